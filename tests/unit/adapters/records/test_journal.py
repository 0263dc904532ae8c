"""Every batch of a journal comes back as it was, in however many rows it was kept."""

import zlib
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.records.journal import Pack, pack, unpack
from ibid.domain.events import (
    CitationsFound,
    Entry,
    Phase,
    RunEvent,
    StatusChanged,
    TokenDelta,
)
from ibid.domain.passages import Citation
from tests.fakes.samples import a_citation, a_done, a_run

ANY_TEXT = st.text()  # halves of surrogate pairs too
MAYBE_TEXT = st.none() | ANY_TEXT
COUNT = st.integers(0, 2**53)
CITATIONS = st.builds(
    Citation,
    index=COUNT,
    file_path=ANY_TEXT,
    start_line=COUNT,
    end_line=COUNT,
    language=ANY_TEXT,
    symbol=MAYBE_TEXT,
    commit_sha=MAYBE_TEXT,
    score=st.floats(0, 1),
    url=MAYBE_TEXT,
    cited=st.none() | st.booleans(),
)
EVENTS: st.SearchStrategy[RunEvent] = st.one_of(
    st.builds(TokenDelta, text=ANY_TEXT),
    st.builds(StatusChanged, phase=st.sampled_from(Phase)),
    st.builds(CitationsFound, citations=st.lists(CITATIONS, max_size=3).map(tuple)),
)


def _numbered(events: Sequence[RunEvent], first_id: int = 1) -> list[Entry]:
    return [Entry(id=id_, event=event) for id_, event in enumerate(events, first_id)]


@given(st.lists(EVENTS, max_size=12), st.integers(1, 2**40), st.integers(1, 400))
def test_entries_come_back_from_rows_of_any_size(
    events: Sequence[RunEvent], first_id: int, max_bytes: int
) -> None:
    entries = _numbered(events, first_id)

    packs = pack(entries, max_bytes=max_bytes)

    assert list(unpack(packs)) == entries
    assert all(0 < len(one.body) <= max_bytes for one in packs)
    assert len({(one.first_id, one.part) for one in packs}) == len(packs)


def test_a_batch_that_fits_is_one_row() -> None:
    entries = _numbered([TokenDelta(text="word ")] * 400)

    (one,) = pack(entries, max_bytes=350_000)

    assert (one.first_id, one.last_id, one.part, one.parts) == (1, 400, 0, 1)
    assert len(one.body) < 200


def test_only_an_entry_that_no_row_holds_is_cut() -> None:
    short, long = TokenDelta(text="a"), TokenDelta(text=repr(list(range(1_000))))

    packs = pack(_numbered([short, long, short]), max_bytes=500)

    assert {one.first_id for one in packs if one.parts > 1} == {2}


def test_a_terminator_is_not_packed() -> None:
    with pytest.raises(ValueError, match="terminator"):
        pack(_numbered([a_done(a_run())]), max_bytes=500)


def test_entries_with_a_gap_are_not_packed() -> None:
    one, other = _numbered([TokenDelta(text="a"), TokenDelta(text="b")])

    with pytest.raises(ValueError, match="id 3 stands where 2 should"):
        pack([one, replace(other, id=3)], max_bytes=500)


def _changed(body: bytes, **fields: int) -> Pack:
    (one,) = pack(_numbered([CitationsFound(citations=[a_citation()])]), max_bytes=5_000)
    return replace(one, body=body or one.body, **fields)


@pytest.mark.parametrize(
    "damaged",
    [
        _changed(b"\x02"),
        _changed(b"\x01nonsense"),
        _changed(b"\x01" + zlib.compress(b'[1,[["x",1]]]')),
        _changed(b"", parts=2),
        _changed(b"", part=1),
        _changed(b"", first_id=2),
        _changed(b"", last_id=2),
    ],
)
def test_a_row_that_is_damaged_or_missing_is_told(damaged: Pack) -> None:
    with pytest.raises(ValueError, match=r"newer|damaged|written|missing|other ids"):
        list(unpack([damaged]))
