"""Choose the excerpts that answer: telling words weighed by rarity, definitions first."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ibid.adapters.models.code_shape import all_imports
from ibid.adapters.models.cutting import PROSE, Size, cut_to_size, units_of
from ibid.adapters.models.evidence_rules import missing_names
from ibid.adapters.models.excerpt_units import Unit
from ibid.adapters.models.overview import describing_units
from ibid.adapters.models.question_kinds import (
    asks_for_a_place,
    asks_for_an_overview,
    asks_for_code,
    asks_for_uses,
    asks_how_to,
    asks_why,
)
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
DOCUMENT_STEP: Final = 0.03
"""The same of documents where they answer best: the search prefers source."""
LENGTH_STEP: Final = 0.01
"""What each line takes: a long excerpt holds words by chance."""
PER_PASSAGE: Final = 2
_NEAR_LINES: Final = 3

HEADING_WEIGHT: Final = 0.8
"""What a word of the heading counts where documents answer best: it says what for."""
EXACT_WEIGHT: Final = 0.6
"""What a name counts more that is just what was asked for, not a part of another."""
DOCUMENT_FACTOR: Final = 1.6
"""What documents count where they answer best."""
UNHELD: Final = 2
"""Most excerpts if no passage holds a name that is asked about."""

_DIRECTIVE: Final = re.compile(r"\s*\.\. (?:code|sourcecode|literalinclude|prompt)")
_INTRODUCES: Final = re.compile(rf":\s*$|^{_DIRECTIVE.pattern}")
_TESTS: Final = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|[/_.])(?:test|spec)[_.]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    units: Sequence[Unit]
    terms: frozenset[str]
    heading: frozenset[str]
    context: frozenset[str]
    name: frozenset[str]
    own_name: Sequence[str]
    factor: float


def choose(
    question: str, asked: QuestionTerms, passages: Sequence[Passage], size: Size
) -> list[Unit]:
    """Choose what to quote.

    Returns:
        At least one unit if any passage has text, about `size.excerpts`, cut to their telling
        lines; in the order of the question's parts, the best first within a part.
    """
    if asks_for_an_overview(question) and (described := describing_units(passages)):
        return [cut_to_size(unit, {}, asked.language, size) for unit in described]
    candidates = [
        _scored(units, passage, question, asked)
        for number, passage in enumerate(passages, start=1)
        for units in _with_examples(units_of(passage, number))
    ]
    weights = _weights(asked, candidates)
    uses = bool(asked.names) and asks_for_uses(question)
    if uses:
        candidates = [replace(each, name=frozenset()) for each in candidates]
    elif len(asked.parts) == 1 and asks_for_a_place(question):
        candidates = [each for each in candidates if asked.names & set(each.own_name)] or candidates
    most = min(UNHELD, size.excerpts) if missing_names(asked, passages) else size.excerpts
    chosen = _best(candidates, weights, most, covers=not uses)
    if not chosen:  # found by meaning alone: the best passage begins with its best line
        chosen = candidates[:1]
    order = sorted(chosen, key=lambda each: _part(each, asked, weights))
    cut = [
        cut_to_size(unit, weights, asked.language, size) for each in order for unit in each.units
    ]
    distinct = {unit.text: unit for unit in reversed(cut)}.values()
    return [_with_members(unit, passages) for unit in reversed(distinct)]


def _with_members(unit: Unit, passages: Sequence[Passage]) -> Unit:
    """Tell of a class whose members stand in another passage that it goes on."""
    member, own = f"{unit.defines}.", passages[unit.number - 1]
    goes_on = unit.may_go_on and any(
        each.file_path == own.file_path
        and each.start_line > unit.end_line
        and any(member in f"{symbol}." for symbol in each.symbol.split())
        for each in passages
    )
    return replace(unit, goes_on=True) if goes_on else unit


def _best(
    candidates: list[_Scored], weights: Mapping[str, float], most: int, *, covers: bool
) -> list[_Scored]:
    """Take the best one after the other, each weighed by what those before it do not hold."""
    left = list(candidates)
    chosen: list[_Scored] = []
    covered: set[str] = set()
    best = 0.0
    taken: Counter[int] = Counter()
    while left and len(chosen) < most:
        score, at = max((_score(each, weights, covered), -at) for at, each in enumerate(left))
        best = best or score
        if not score or score < LEAST_SHARE * best:
            break
        pick = left[-at]
        first = pick.units[0]
        taken[first.number] += 1
        full = taken[first.number] >= PER_PASSAGE
        left = [
            each
            for each in left
            if each.units[0].text != first.text
            and not (full and each.units[0].number == first.number)
        ]
        if covers:  # each use of a thing holds the same words
            covered |= pick.terms | pick.name
        chosen.append(pick)
    return chosen


def _with_examples(units: Sequence[Unit]) -> list[Sequence[Unit]]:
    """Keep an example with the sentence that introduces it."""
    groups: list[list[Unit]] = []
    for unit in units:
        if groups and _introduces(groups[-1][-1], unit):
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return list(groups)


def _introduces(unit: Unit, following: Unit) -> bool:
    if unit.kind != "prose" or not _INTRODUCES.search(unit.lines[-1]):
        return False
    within = _indent(following.lines[0]) > _indent(unit.lines[-1])
    within = within or bool(_DIRECTIVE.match(following.lines[0]))
    near = following.start_line - unit.end_line <= _NEAR_LINES
    return near and (following.kind == "code" or within)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _scored(
    units: Sequence[Unit], passage: Passage, question: str, asked: QuestionTerms
) -> _Scored:
    first = units[0]
    wanted = frozenset(asked.terms)
    how_to = asks_how_to(question)
    is_document = passage.language in PROSE
    step = DOCUMENT_STEP if how_to and is_document else RANK_STEP
    factor = 1 / (1 + step * (first.number - 1))
    if _TESTS.search(passage.file_path) and "test" not in question.casefold():
        factor *= 0.7
    if how_to:
        factor *= DOCUMENT_FACTOR if is_document else 1
    elif first.kind == "code" and asks_for_code(question):
        factor *= 1.15
    elif first.kind == "prose" and (not asked.names or asks_why(question)):
        factor *= 1.25
    if all_imports(first.lines) and "import" not in question.casefold():
        factor *= 0.5
    factor /= 1 + LENGTH_STEP * sum(len(unit.lines) for unit in units)
    defines = analyse(first.defines, language=asked.language)
    text = "\n".join(unit.text for unit in units)
    terms = wanted.intersection(analyse(text, language=asked.language))
    heading = wanted.intersection(analyse(first.heading, language=asked.language)) - terms
    context = f"{passage.file_path} {passage.symbol} {first.heading}"
    return _Scored(
        units=units,
        terms=terms,
        heading=heading if how_to else frozenset(),
        context=wanted.intersection(analyse(context, language=asked.language)) - terms,
        name=frozenset() if how_to else wanted.intersection(defines),
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


def _score(each: _Scored, weights: Mapping[str, float], covered: set[str]) -> float:
    def worth(term: str) -> float:
        return weights[term] * (COVERED_WEIGHT if term in covered else 1.0)

    if not (each.terms or each.heading):
        return 0.0
    total = _sum(map(worth, each.terms))
    total += HEADING_WEIGHT * _sum(map(worth, each.heading))
    total += CONTEXT_WEIGHT * _sum(map(worth, each.context - each.heading))
    total += DEFINITION_WEIGHT * _sum(weights[term] for term in each.name)
    total += EXACT_WEIGHT * _sum(weights[term] for term in each.name.intersection(each.own_name))
    return total * each.factor


def _part(each: _Scored, asked: QuestionTerms, weights: Mapping[str, float]) -> int:
    """The position of the question's part that a unit answers best, the first one on a tie."""
    shares = [_sum(weights[term] for term in part & each.terms) for part in asked.parts]
    return shares.index(max(shares))


def _sum(values: Iterable[float]) -> float:
    """A sum that does not depend on a set's order, so that answers repeat."""
    return math.fsum(values)
