"""Choose the excerpts that answer: telling words weighed by rarity, definitions first."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ibid.adapters.models.code_units import code_units
from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.prose_units import prose_units
from ibid.adapters.models.question_terms import QuestionTerms
from ibid.domain.analysis import analyse
from ibid.domain.passages import Passage

IDENTIFIER_WEIGHT: Final = 2.0
CONTEXT_WEIGHT: Final = 0.35
"""What a word of the path, symbol or heading counts, beside one of the excerpt."""
DEFINITION_WEIGHT: Final = 0.9
"""What a word of the defined name counts more."""
COVERED_WEIGHT: Final = 0.35
"""What a word counts again that an excerpt chosen before already holds."""
LEAST_SHARE: Final = 0.3
"""Of the best excerpt's score, what another one must reach."""
RANK_STEP: Final = 0.1
"""What each better passage takes from an excerpt: the search's order is evidence too."""
LENGTH_STEP: Final = 0.01
"""What each line takes: a long excerpt holds words by chance."""
PER_PASSAGE: Final = 2

PROSE: Final = frozenset(
    {"markdown", "text", "rst", "restructuredtext", "asciidoc", "org", "html", ""}
)
"""Languages cut by paragraph; every other one is cut as code."""

_TESTS: Final = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|[/_.])(?:test|spec)[_.]")
_WHERE: Final = re.compile(
    r"\b(?:where|onde|d[oó]nde|which file|implement|defined?)", re.IGNORECASE
)
_PLACE: Final = re.compile(r"\b(?:where|onde|d[oó]nde)\b", re.IGNORECASE)
_USE: Final = re.compile(
    r"\b(?:us(?:e|ed|es|age)|call|invo[ck]|import|refer|test|rais|handl|usad|cham|llam)",
    re.IGNORECASE,
)
_WHY: Final = re.compile(r"\b(?:why|what is|purpose|por ?qu[eé]|o que é|qué es)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is quoted: excerpts, lines of code each, and characters of prose each."""

    excerpts: int
    code_lines: int
    prose_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    unit: Unit
    terms: frozenset[str]
    context: frozenset[str]
    name: frozenset[str]
    own_name: Sequence[str]
    factor: float


def choose(
    question: str, asked: QuestionTerms, passages: Sequence[Passage], size: Size
) -> list[Unit]:
    """Choose what to quote.

    Returns:
        At least one unit if any passage has text, at most `size.excerpts`, cut to their telling
        lines; in the order of the question's parts, the best first within a part.
    """
    candidates = [
        _scored(unit, passage, question, asked)
        for number, passage in enumerate(passages, start=1)
        for unit in units_of(passage, number)
    ]
    weights = _weights(asked, candidates)
    uses = bool(asked.names) and bool(_USE.search(question))
    if uses:
        candidates = [replace(each, name=frozenset()) for each in candidates]
    elif len(asked.parts) == 1 and _PLACE.search(question):
        candidates = [each for each in candidates if asked.names & set(each.own_name)] or candidates
    chosen: list[_Scored] = []
    covered: set[str] = set()
    best = 0.0
    taken: Counter[int] = Counter()
    texts: set[str] = set()
    while candidates and len(chosen) < size.excerpts:
        score, at = max((_score(each, weights, covered), -at) for at, each in enumerate(candidates))
        best = best or score
        if not score or score < LEAST_SHARE * best:
            break
        pick = candidates.pop(-at)
        pick = replace(pick, unit=_cut(pick.unit, asked, weights, size))
        if taken[pick.unit.number] >= PER_PASSAGE or pick.unit.text in texts:
            continue
        taken[pick.unit.number] += 1
        texts.add(pick.unit.text)
        if not uses:  # each use of a thing holds the same words
            covered |= pick.terms | pick.name
        chosen.append(pick)
    if not chosen:  # found by meaning alone: the best passage begins with its best line
        return [_cut(each.unit, asked, weights, size) for each in candidates[:1]]
    order = sorted(chosen, key=lambda each: _part(each, asked, weights))
    return [each.unit for each in order]


def units_of(passage: Passage, number: int) -> list[Unit]:
    """Cut a passage into what can be quoted; units never overlap, and keep the lines' order."""
    lines = passage.content.split("\n")
    if passage.truncated:
        lines = lines[:-1]  # the last one is a marker of ours, no line of the file
    is_prose = passage.language in PROSE
    whole = Unit(
        number=number,
        kind="prose" if is_prose else "code",
        lines=lines,
        start_line=passage.start_line,
        language=passage.language,
    )
    cut = prose_units(whole) if is_prose else code_units(whole)
    return [unit for unit in cut if any(line.strip() for line in unit.lines)]


def _scored(unit: Unit, passage: Passage, question: str, asked: QuestionTerms) -> _Scored:
    wanted = frozenset(asked.terms)
    factor = 1 / (1 + RANK_STEP * (unit.number - 1))
    if _TESTS.search(passage.file_path) and "test" not in question.casefold():
        factor *= 0.7
    if unit.kind == "code" and _WHERE.search(question):
        factor *= 1.15
    elif unit.kind == "prose" and (not asked.identifiers or _WHY.search(question)):
        factor *= 1.25
    factor /= 1 + LENGTH_STEP * len(unit.lines)
    defines = analyse(unit.defines, language=asked.language)
    context = f"{passage.file_path} {passage.symbol} {unit.heading}"
    return _Scored(
        unit=unit,
        terms=wanted.intersection(analyse(unit.text, language=asked.language)),
        context=wanted.intersection(analyse(context, language=asked.language)),
        name=wanted.intersection(defines),
        own_name=defines[:1],
        factor=factor,
    )


def _weights(asked: QuestionTerms, candidates: Sequence[_Scored]) -> dict[str, float]:
    """Inverse frequency of each term among the units; identifiers count double."""
    held = Counter(term for each in candidates for term in each.terms)
    return {
        term: math.log(1 + (len(candidates) - held[term] + 0.5) / (held[term] + 0.5))
        * (IDENTIFIER_WEIGHT if term in asked.names else 1.0)
        for term in asked.terms
    }


def _score(each: _Scored, weights: dict[str, float], covered: set[str]) -> float:
    def worth(term: str) -> float:
        return weights[term] * (COVERED_WEIGHT if term in covered else 1.0)

    if not each.terms:
        return 0.0
    total = sum(map(worth, each.terms))
    total += CONTEXT_WEIGHT * sum(map(worth, each.context - each.terms))
    total += DEFINITION_WEIGHT * sum(weights[term] for term in each.name)
    return total * each.factor


def _part(each: _Scored, asked: QuestionTerms, weights: dict[str, float]) -> int:
    """The position of the question's part that a unit answers best, the first one on a tie."""
    shares = [sum(weights[term] for term in part & each.terms) for part in asked.parts]
    return shares.index(max(shares))


def _cut(unit: Unit, asked: QuestionTerms, weights: dict[str, float], size: Size) -> Unit:
    """Cut a unit to the window that holds most, the earliest on a tie."""
    spans = [
        frozenset(analyse(line, language=asked.language)) & weights.keys() for line in unit.lines
    ]
    length = size.code_lines if unit.kind == "code" else _lines_within(unit, size.prose_characters)
    if len(unit.lines) <= length:
        return unit

    def worth(start: int) -> float:
        held = frozenset[str]().union(*spans[start : start + length])
        begins = 0.5 if start == 0 and unit.defines else 0.0
        return sum(weights[term] for term in held) * (1 + begins) + begins

    start = max(range(len(unit.lines) - length + 1), key=lambda at: (worth(at), -at))
    return unit.window(start, start + length)


def _lines_within(unit: Unit, characters: int) -> int:
    """How many of the longest lines fit, at least one."""
    widest = max(len(line) for line in unit.lines) + 1
    return max(1, characters // widest)
