"""The Ask surface's events: one line each, byte for byte what their models give."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.answers import FinishReason
from ibid.domain.events import (
    CitationsFound,
    Entry,
    Failed,
    Phase,
    RunEvent,
    StatusChanged,
    TokenDelta,
)
from ibid.web.ask_events import ASK_EVENTS, TokenDeltaEvent
from ibid.web.ask_telling import AskTelling
from tests.fakes.samples import a_citation
from tests.unit.web.test_ask_envelope import DONE, PAUSED, RUN
from tests.unit.web.test_framing import events, texts

FAILED = Failed(
    message_id="m",
    code="RUN_LOST",
    message="lost \ud800",
    finish_reason=FinishReason.ERROR,
    kept_through_id=3,
)


def told(*shown: RunEvent) -> list[tuple[str, str]]:
    telling = AskTelling()
    return [telling.tell(Entry(id=number, event=one), RUN) for number, one in enumerate(shown, 1)]


@given(shown=st.lists(events, max_size=5))
def test_every_event_is_one_line_and_byte_for_byte_its_models(shown: list[RunEvent]) -> None:
    for name, data in told(*shown):
        model = ASK_EVENTS[name]

        assert not {"\n", "\r"} & set(data)
        assert model.model_validate_json(data).model_dump_json() == data


@given(text=texts)
def test_a_token_is_encoded_as_its_model_is(text: str) -> None:
    assert told(TokenDelta(text=text)) == [
        ("token_delta", TokenDeltaEvent(delta=text).model_dump_json())
    ]


def test_the_narration_is_the_tokens_joined() -> None:
    shown = told(TokenDelta(text="It is "), TokenDelta(text="here [1]."), DONE)

    name, data = shown[-1]
    assert name == "answer"
    assert json.loads(data)["narration"] == "It is here [1]."


def test_what_was_found_is_counted_within_its_phase() -> None:
    found = CitationsFound(citations=[a_citation(cited=None)])

    shown = told(StatusChanged(phase=Phase.RETRIEVING), found)

    assert [json.loads(data) for _, data in shown] == [
        {"phase": "retrieving"},
        {"phase": "retrieving", "passages": 1},
    ]


def test_a_pause_is_an_answer_and_a_failure_an_error() -> None:
    assert [name for name, _ in told(PAUSED)] == ["answer"]
    ((name, data),) = told(FAILED)
    assert name == "error"
    assert json.loads(data) == {
        "code": "RUN_LOST",
        "message": "lost \ufffd",
        "run_id": "c1-2",
        "finish_reason": "error",
        "kept_through_id": 3,
    }


def test_the_whole_answer_is_the_data_of_the_terminator() -> None:
    shown: list[RunEvent] = [TokenDelta(text="Here."), DONE]
    telling = AskTelling()
    for number, event in enumerate(shown, 1):
        assert telling.body is None
        telling.add(Entry(id=number, event=event), RUN)

    assert telling.body == told(*shown)[-1][1]


def test_the_envelope_takes_its_time_from_the_run_as_it_is_kept() -> None:
    started = replace(RUN, ended_at=None)
    telling = AskTelling()
    telling.tell(Entry(id=1, event=TokenDelta(text="Here.")), started)

    _, data = telling.tell(Entry(id=2, event=DONE), RUN)

    assert json.loads(data)["created_at"] == "2026-01-02T12:00:07Z"
