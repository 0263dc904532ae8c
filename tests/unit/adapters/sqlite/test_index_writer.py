import os
import signal
import sqlite3
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibid.adapters.sqlite.index_place import GenerationPlace, ProjectPlace
from ibid.adapters.sqlite.index_reader import SealedGeneration
from ibid.adapters.sqlite.index_writer import Abandoned, GenerationDraft
from ibid.domain.passages import Vector
from tests.contract.passages import chunk, unit

KILLED = """
import sys
from pathlib import Path
from ibid.adapters.sqlite.index_place import ProjectPlace
from ibid.adapters.sqlite.index_writer import GenerationDraft
from tests.contract.passages import chunk

draft = GenerationDraft(ProjectPlace(Path(sys.argv[1]), "t", "p").generation(1))
draft.add([chunk("a"), chunk("b")], None)
print("added", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> GenerationPlace:
    return ProjectPlace(tmp_path / "index", "t", "p").generation(1)


@pytest.fixture
def draft(place: GenerationPlace) -> Iterator[GenerationDraft]:
    draft = GenerationDraft(place)
    yield draft
    draft.drop()


def seal(draft: GenerationDraft, signature: str | None = None) -> None:
    draft.seal(
        embedding_signature=signature,
        main_language="english",
        commit_sha=None,
        source_digest="d",
    )


def paths_of(place: GenerationPlace) -> list[str]:
    sealed = SealedGeneration(place)
    try:
        return list(sealed.paths("", 100).paths)
    finally:
        sealed.close()


def test_a_seal_leaves_one_file_and_nothing_beside_it(
    place: GenerationPlace, draft: GenerationDraft
) -> None:
    draft.add([chunk("a")], [unit(1, 0)])
    assert not place.file.exists()

    seal(draft, "model/2")

    assert list(place.project.folder.iterdir()) == [place.file]


def test_a_drop_leaves_nothing(place: GenerationPlace, draft: GenerationDraft) -> None:
    draft.add([chunk("a")], None)

    draft.drop()
    draft.drop()

    assert list(place.project.folder.iterdir()) == []


@pytest.mark.parametrize("ending", ["sealed", "dropped"])
def test_an_ended_draft_takes_nothing_more(draft: GenerationDraft, ending: str) -> None:
    if ending == "sealed":
        seal(draft)
    else:
        draft.drop()

    with pytest.raises(Abandoned):
        draft.add([chunk("a")], None)
    with pytest.raises(Abandoned):
        seal(draft)


def test_a_sealed_generation_is_not_written_again(
    place: GenerationPlace, draft: GenerationDraft
) -> None:
    seal(draft)

    with pytest.raises(ValueError, match="is sealed"):
        GenerationDraft(place)


def test_a_second_writer_takes_the_number(place: GenerationPlace, draft: GenerationDraft) -> None:
    draft.add([chunk("first")], None)
    second = GenerationDraft(place)
    second.add([chunk("second")], None)

    with pytest.raises(Abandoned):
        seal(draft)
    seal(second)

    assert paths_of(place) == ["second"]
    draft.drop()
    assert paths_of(place) == ["second"]


def test_a_writer_that_was_overtaken_publishes_nothing(
    place: GenerationPlace, draft: GenerationDraft
) -> None:
    draft.add([chunk("mine")], None)
    place.file.write_bytes(b"another writer's")

    with pytest.raises(Abandoned):
        seal(draft)

    assert place.file.read_bytes() == b"another writer's"


def test_a_deletion_ends_a_draft_for_good(place: GenerationPlace, draft: GenerationDraft) -> None:
    draft.add([chunk("a")], None)

    place.remove()

    with pytest.raises(Abandoned):
        seal(draft)
    assert place.project.all() == []


def test_a_killed_writer_s_leavings_go_with_the_next_draft(place: GenerationPlace) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(place.project.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONPATH": "."},
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "added\n"
        writer.send_signal(signal.SIGKILL)
    assert place.project.sealed() == []
    assert place.project.all() == [1]

    draft = GenerationDraft(place)
    draft.add([chunk("next")], None)
    seal(draft)

    assert paths_of(place) == ["next"]
    assert list(place.project.folder.iterdir()) == [place.file]


def test_a_stop_ends_a_seal_under_way(place: GenerationPlace, draft: GenerationDraft) -> None:
    draft.add([chunk("a", at, content="owl " * 2_000) for at in range(2_000)], None)
    outcome: list[type[BaseException] | None] = []

    def run() -> None:
        try:
            seal(draft)
        except Abandoned as error:
            outcome.append(type(error))
        else:
            outcome.append(None)

    sealing = threading.Thread(target=run)
    sealing.start()
    while not any(
        workshop.joinpath("generation").stat().st_size > 1 << 20 for workshop in place.workshops()
    ):
        pass  # until it has begun to copy what was spooled
    draft.drop()
    sealing.join()

    assert outcome == [Abandoned]
    assert list(place.project.folder.iterdir()) == []


def test_a_chunk_comes_once(draft: GenerationDraft) -> None:
    draft.add([chunk("a", 0), chunk("a", 1)], None)

    with pytest.raises(ValueError, match="was added before"):
        draft.add([chunk("a", 1)], None)
    with pytest.raises(Abandoned):
        seal(draft)


def test_a_full_disk_is_told_as_it_is(
    draft: GenerationDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    draft.add([chunk("a")], None)
    monkeypatch.setattr("ibid.adapters.sqlite.index_writer.append_arrays", full)

    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        seal(draft)


def test_an_empty_call_changes_nothing(place: GenerationPlace, draft: GenerationDraft) -> None:
    draft.add([], None)
    draft.add([chunk("a")], [unit(1, 0)])
    draft.add([], [])

    seal(draft, "model/2")

    assert paths_of(place) == ["a"]


@pytest.mark.parametrize(
    ("vectors", "why"),
    [
        ([], "0 vectors for 1 chunks"),
        ([unit(1, 0)] * 2, "2 vectors for 1 chunks"),
        ([unit(1, 0, 0)], "of 2 float32"),
        ([array("f")], "of 2 float32"),
        ([array("d", [1.0, 0.0])], "of 2 float32"),
        ([array("f", [float("nan"), 0.0])], "no number"),
        ([array("f", [float("inf"), 0.0])], "no number"),
        (None, "some have none"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    place: GenerationPlace, draft: GenerationDraft, vectors: list[Vector] | None, why: str
) -> None:
    draft.add([chunk("a")], [unit(1, 0)])

    with pytest.raises(ValueError, match=why):
        draft.add([chunk("b")], vectors)

    seal(draft, "model/2")
    assert paths_of(place) == ["a"]


def test_vectors_after_none_are_refused(draft: GenerationDraft) -> None:
    draft.add([chunk("a")], None)

    with pytest.raises(ValueError, match="some have none"):
        draft.add([chunk("b")], [unit(1, 0)])


@pytest.mark.parametrize(("vectors", "signature"), [([unit(1, 0)], None), (None, "model/2")])
def test_vectors_and_a_signature_come_together(
    draft: GenerationDraft, vectors: list[Vector] | None, signature: str | None
) -> None:
    draft.add([chunk("a")], vectors)

    with pytest.raises(ValueError, match="come together"):
        seal(draft, signature)
