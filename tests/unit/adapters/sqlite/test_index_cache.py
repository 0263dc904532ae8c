import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ibid.adapters.sqlite.index_cache import OpenGenerations
from ibid.adapters.sqlite.index_place import GenerationPlace, ProjectPlace
from ibid.adapters.sqlite.index_reader import SealedGeneration
from ibid.adapters.sqlite.index_writer import GenerationDraft


class Counted(SealedGeneration):
    """Counts itself while it is open."""

    opened = 0
    closed = 0

    def __init__(self, place: GenerationPlace) -> None:
        super().__init__(place)
        type(self).opened += 1

    def close(self) -> None:
        super().close()
        type(self).closed += 1

    @classmethod
    def still_open(cls) -> int:
        return cls.opened - cls.closed


@pytest.fixture
def counted() -> type[Counted]:
    class Fresh(Counted):
        pass

    return Fresh


@pytest.fixture
def places(tmp_path: Path) -> list[GenerationPlace]:
    places = [ProjectPlace(tmp_path, "tenant", "project").generation(n) for n in range(4)]
    for place in places:
        seal(place)
    return places


@pytest.fixture
def cache(counted: type[Counted]) -> Iterator[OpenGenerations]:
    cache = OpenGenerations(2, counted)
    yield cache
    cache.close()
    assert counted.still_open() == 0


def seal(place: GenerationPlace) -> None:
    GenerationDraft(place).seal(
        embedding_signature=None, main_language="english", commit_sha=None, source_digest="d"
    )


def test_a_generation_is_opened_once(
    cache: OpenGenerations, counted: type[Counted], places: list[GenerationPlace]
) -> None:
    for _ in range(3):
        with cache.reading(places[0]):
            pass

    assert counted.opened == 1


def test_only_the_latest_read_stay_open(
    cache: OpenGenerations, counted: type[Counted], places: list[GenerationPlace]
) -> None:
    for at in (0, 1, 0, 2):  # 1 is the one that was not read for longest
        with cache.reading(places[at]):
            pass

    assert (counted.opened, counted.still_open()) == (3, 2)
    with cache.reading(places[0]):
        assert counted.opened == 3
    with cache.reading(places[1]):
        assert counted.opened == 4


def test_one_in_use_is_closed_only_after_its_last_reader(
    cache: OpenGenerations, counted: type[Counted], places: list[GenerationPlace]
) -> None:
    with ExitStack() as first_reader, ExitStack() as second_reader:
        generation = first_reader.enter_context(cache.reading(places[0]))
        assert second_reader.enter_context(cache.reading(places[0])) is generation
        cache.forget(places[0].file.parent)

        first_reader.close()
        assert generation.facts.chunk_count == 0
        assert counted.closed == 0
        second_reader.close()

    assert counted.closed == 1


def test_a_deleted_one_is_let_go(
    cache: OpenGenerations, counted: type[Counted], places: list[GenerationPlace]
) -> None:
    with cache.reading(places[0]):
        pass
    places[0].remove()

    with pytest.raises(FileNotFoundError), cache.reading(places[0]):
        pass

    assert counted.still_open() == 0


def test_a_file_that_took_its_place_is_opened_anew(
    cache: OpenGenerations, counted: type[Counted], places: list[GenerationPlace]
) -> None:
    with cache.reading(places[0]) as old:
        places[0].remove()
        seal(places[0])
        with cache.reading(places[0]) as new:
            assert new is not old

    assert (counted.opened, counted.still_open()) == (2, 1)


def test_two_that_open_it_at_once_leave_one_open(
    counted: type[Counted], places: list[GenerationPlace]
) -> None:
    both_opening = threading.Barrier(2, timeout=30)

    def opened(place: GenerationPlace) -> SealedGeneration:
        both_opening.wait()
        return counted(place)

    cache = OpenGenerations(2, opened)

    def read() -> None:
        with cache.reading(places[0]) as generation:
            assert generation.facts.chunk_count == 0

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (counted.opened, counted.still_open()) == (2, 1)
    cache.close()
    assert counted.still_open() == 0
