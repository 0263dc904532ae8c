"""When what was retrieved has two readings of one name: rules that would rather not ask.

Two places tie if the question names them by one name and nothing else in it tells them apart:

- symbols: each defines something whose own name (the last part of a dotted one) is the name;
- documents: each is a file of the name, or, where a question is about one word only, a file whose
  name without its ending is that word.

Places that the name spells in full (`Loader.load`, `src/load.py`, a top-level `load`) leave the
others out, as does a place in the source those in tests, examples and documents that were not
asked for. Of what remains, only those tie that hold most of the question's other words in their
path, symbol or text. A definition and its declaration (`load.c`, `load.h`) are one place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from ibid.domain.passages import Passage
from ibid.graphs.answer.ask_state import MAX_OPTIONS, Ambiguity, Doubt, Option
from ibid.graphs.answer.excerpts import one_line
from ibid.graphs.answer.naming import own_name, read_names, words_of
from ibid.retrieval.path_prior import PathPrior

LONGEST_OPTION: Final = 200
_FEWEST: Final = 2


@dataclass(slots=True, kw_only=True)
class _Place:
    """Where one thing of the name stands, and the texts of the passages that show it."""

    path: str
    symbol: str
    texts: list[str] = field(default_factory=list)


def find_tie(
    question: str,
    passages: Sequence[Passage],
    *,
    dropped: Sequence[Option] = (),
    settled: Sequence[str] = (),
) -> Ambiguity | None:
    """Find the first name of a question that two places tie on.

    Args:
        question: The asker's words.
        passages: What was retrieved, best first.
        dropped: Places that the asker does not mean.
        settled: Names, in lower case, that were asked about.

    Returns:
        The places that tie, in the order of their best passages, at most `MAX_OPTIONS`; None if
        nothing ties.
    """
    named = read_names(question)
    prior = PathPrior(question)
    out = {(option.path, option.symbol) for option in dropped}
    for name in named.names:
        if name.lower() in settled:
            continue
        for doubt, places in (
            (Doubt.SYMBOL, _symbols(name, passages)),
            (Doubt.DOCUMENT, _documents(name, passages, alone=len(named.names) == 1)),
        ):
            left = [place for place in places if (place.path, place.symbol) not in out]
            own = own_name(name) if doubt is Doubt.SYMBOL else name
            tied = _most_told(_in_source(left, prior), named.words - words_of(own))
            if len(tied) >= _FEWEST:
                return Ambiguity(
                    doubt=doubt, phrase=name, options=_options(tied[:MAX_OPTIONS], doubt)
                )
            if left:
                break  # a symbol of the name is what is meant, not a file of it
    return None


def holds(passage: Passage, place: Option) -> bool:
    """Whether a passage shows a place."""
    return passage.file_path == place.path and (
        not place.symbol or place.symbol in passage.symbol.split()
    )


def without(
    passages: Sequence[Passage], *, dropped: Sequence[Option], kept: Sequence[Option]
) -> list[Passage]:
    """Leave out the files of what the asker does not mean, and put what they mean first.

    Of a file that shows both, only the passages go that show nothing but what is not meant.
    """
    files = {place.path for place in kept}
    out = {place.path for place in dropped} - files
    left = [
        passage
        for passage in passages
        if passage.file_path not in out
        and (
            not any(holds(passage, place) for place in dropped)
            or any(holds(passage, place) for place in kept)
        )
    ]
    return sorted(
        left,
        key=lambda passage: (
            not any(holds(passage, place) for place in kept),
            passage.file_path not in files,
        ),
    )


def _symbols(name: str, passages: Sequence[Passage]) -> list[_Place]:
    own = own_name(name)
    places: dict[tuple[str, str], _Place] = {}
    for passage in passages:
        for symbol in passage.symbol.split():
            if own_name(symbol).casefold() == own.casefold():
                key = (str(PurePosixPath(passage.file_path).with_suffix("")), symbol)
                place = places.setdefault(key, _Place(path=passage.file_path, symbol=symbol))
                place.texts.append(passage.content)
    found = list(places.values())
    found = [each for each in found if own_name(each.symbol) == own] or found
    return (
        [each for each in found if each.symbol == name]
        or [each for each in found if each.symbol.endswith(f".{name}")]
        or found
    )


def _documents(name: str, passages: Sequence[Passage], *, alone: bool) -> list[_Place]:
    places: dict[str, _Place] = {}
    for passage in passages:
        path = PurePosixPath(passage.file_path)
        is_named = _ends(passage.file_path, name) or (
            alone and path.stem.casefold() == name.casefold()
        )
        if is_named:
            place = places.setdefault(str(path), _Place(path=str(path), symbol=""))
            place.texts.append(passage.content)
    found = list(places.values())
    exact = [each for each in found if name in {each.path, PurePosixPath(each.path).stem}]
    top = [each for each in exact if "/" not in each.path]
    same = {PurePosixPath(each.path).name for each in found}
    return top or (found if len(same) == 1 else found[:1])


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def _in_source(places: Sequence[_Place], prior: PathPrior) -> Sequence[_Place]:
    weights = [prior.weight(place.path) for place in places]
    best = max(weights, default=0.0)
    return [place for place, weight in zip(places, weights, strict=True) if weight == best]


def _most_told(places: Sequence[_Place], others: frozenset[str]) -> Sequence[_Place]:
    """Keep the places that hold most of what the question says besides the name."""
    if not others or len(places) < _FEWEST:
        return places
    counts = [len(others & _words(place)) for place in places]
    return [place for place, count in zip(places, counts, strict=True) if count == max(counts)]


def _words(place: _Place) -> frozenset[str]:
    return words_of(" ".join((place.path.replace("/", " "), place.symbol, *place.texts)))


def _options(places: Iterable[_Place], doubt: Doubt) -> list[Option]:
    texts: dict[str, Option] = {}
    for place in places:
        text = f"{place.path}: {place.symbol}" if doubt is Doubt.SYMBOL else place.path
        text = one_line(text)[:LONGEST_OPTION]
        texts.setdefault(text, Option(text=text, path=place.path, symbol=place.symbol))
    return list(texts.values())
