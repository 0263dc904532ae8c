"""Frames: whatever a text holds, one event comes out as one event, byte for byte the model's."""

import json
from collections.abc import Sequence
from datetime import UTC
from typing import get_args

import pytest
from httpx_sse._decoders import SSEDecoder, SSELineDecoder
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.answers import Clarification, FinishReason, GroundingWarning, Intent
from ibid.domain.events import (
    CitationsFound,
    Done,
    Entry,
    Failed,
    Paused,
    Phase,
    RunEvent,
    StatusChanged,
    TokenDelta,
)
from ibid.domain.passages import Citation
from ibid.web.framing import PING, message_event, message_frame
from ibid.web.message_events import MESSAGE_EVENTS, CitationsEvent, TokenEvent
from tests.fakes.event_source import Dispatched, EventSourceReader

ODD = ["\n", "\r", "\r\n", "\n\n", "\0", "\x0b", "\x1c", "\x7f", "\x85", "\u2028", "\u2029"]
ODD += ["\ufeff", "\u200f", "é", "😀", "data: x", "id: 9", ": ", '"', "\\", "event: done\n\n", "</"]
texts = st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=8)), max_size=8).map("".join)
citations = st.builds(
    Citation,
    index=st.integers(1, 12),
    file_path=texts,
    start_line=st.integers(1, 9_999),
    end_line=st.integers(1, 9_999),
    language=texts,
    symbol=st.none() | texts,
    commit_sha=st.none() | texts,
    score=st.floats(0, 1),
    url=st.none() | texts,
    cited=st.none() | st.booleans(),
)
many_citations = st.lists(citations, max_size=3)
events: st.SearchStrategy[RunEvent] = st.one_of(
    st.builds(StatusChanged, phase=st.sampled_from(Phase)),
    st.builds(CitationsFound, citations=many_citations),
    st.builds(TokenDelta, text=texts),
    st.builds(
        Done,
        message_id=st.none() | texts,
        model=texts,
        finish_reason=st.sampled_from(FinishReason),
        cited_indexes=st.lists(st.integers(1, 12)),
        grounding_warnings=st.lists(st.sampled_from(GroundingWarning)),
        intent=st.sampled_from(Intent),
        retrieval_attempts=st.integers(0, 5),
        citations=many_citations,
        degraded=st.lists(texts),
    ),
    st.builds(
        Failed,
        message_id=st.none() | texts,
        code=texts,
        message=texts,
        finish_reason=st.sampled_from(FinishReason),
        kept_through_id=st.none() | st.integers(0),
    ),
    st.builds(
        Paused,
        message_id=st.none() | texts,
        interrupt_id=texts,
        node=texts,
        clarification=st.builds(Clarification, question=texts, options=st.lists(texts)),
        expires_at=st.datetimes(timezones=st.just(UTC)),
    ),
)


def entries_of(shown: Sequence[RunEvent]) -> list[Entry]:
    return [Entry(id=number, event=event) for number, event in enumerate(shown, 1)]


def expected(entries: Sequence[Entry]) -> list[Dispatched]:
    return [
        Dispatched(*message_event(entry.event), last_event_id=str(entry.id)) for entry in entries
    ]


@given(shown=st.lists(events, max_size=5), width=st.integers(1, 5))
def test_a_browser_reads_each_event_once_across_any_chunk_boundary(
    shown: list[RunEvent], width: int
) -> None:
    entries = entries_of(shown)
    body = PING.join([b"", *map(message_frame, entries)])
    reader = EventSourceReader()

    read = reader.feed_all(body[start : start + width] for start in range(0, len(body), width))

    assert read == expected(entries)
    assert reader.comments == ["ping"] * len(entries)


@given(shown=st.lists(events, max_size=5), width=st.integers(1, 7))
def test_httpx_sse_reads_each_event_once_across_any_chunk_boundary(
    shown: list[RunEvent], width: int
) -> None:
    entries = entries_of(shown)
    text = b"".join(map(message_frame, entries)).decode()
    lines, decoder = SSELineDecoder(), SSEDecoder()
    pieces = [text[start : start + width] for start in range(0, len(text), width)]

    split = [line for piece in pieces for line in lines.decode(piece)] + lines.flush()
    read = [event for line in split if (event := decoder.decode(line)) is not None]

    assert [Dispatched(one.event, one.data, one.id) for one in read] == expected(entries)


@given(event=events)
def test_the_data_of_every_event_is_one_line_and_byte_for_byte_its_models(event: RunEvent) -> None:
    name, data = message_event(event)

    model = MESSAGE_EVENTS[name]

    assert not {"\n", "\r"} & set(data)
    assert model.model_validate_json(data).model_dump_json() == data


@given(text=texts)
def test_a_token_is_encoded_as_its_model_is(text: str) -> None:
    assert message_event(TokenDelta(text=text))[1] == TokenEvent(text=text).model_dump_json()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\udcff", "\ufffd"),
    ],
)
def test_halves_of_surrogate_pairs_are_joined_or_replaced(text: str, shown: str) -> None:
    token = message_frame(Entry(id=1, event=TokenDelta(text=text)))

    read = EventSourceReader().feed(token)

    assert [json.loads(event.data) for event in read] == [{"text": shown}]


def test_a_path_that_is_no_text_still_makes_a_frame() -> None:
    citation = Citation(
        index=1,
        file_path="a\udcff.py",
        start_line=1,
        end_line=2,
        language="python",
        symbol="f\ud800",
        commit_sha=None,
        score=0.5,
        url=None,
        cited=None,
    )

    _, data = message_event(CitationsFound(citations=[citation]))

    shown = CitationsEvent.model_validate_json(data).citations[0]
    assert (shown.file_path, shown.symbol) == ("a\ufffd.py", "f\ufffd")


def test_every_event_of_a_run_but_a_pause_has_a_name_of_its_own_on_the_surface() -> None:
    assert len(get_args(RunEvent)) == len(MESSAGE_EVENTS) + 1


def test_kept_through_id_is_left_out_where_nothing_was_lost() -> None:
    failed = Failed(
        message_id="m", code="RUN_LOST", message="lost", finish_reason=FinishReason.ERROR
    )

    assert json.loads(message_event(failed)[1]) == {
        "messageId": "m",
        "code": "RUN_LOST",
        "message": "lost",
        "finishReason": "error",
    }
