"""Every ending gives one terminator, and none of them tells what must not be told."""

import asyncio

import pytest

from ibid.domain.answers import Clarification, FinishReason, TurnPause
from ibid.domain.conversations import LIVE_STATES, RunState
from ibid.domain.errors import ModelUnavailable, RunTimedOut, ThreadBusy
from ibid.domain.events import Done, Failed, Paused
from ibid.runs.stages import Stage, can_move
from ibid.runs.states import NEXT_STATES, end_state, finish_reason
from ibid.runs.terminator import Ending, Stop, lost, terminator
from tests.fakes.samples import NOON, a_citation, a_result


def test_a_result_gives_done_with_all_that_the_turn_found() -> None:
    result = a_result("It is [1].", citations=[a_citation(cited=None)])

    done = terminator(result, message_id="m1")

    assert done == Done(
        message_id="m1",
        model="scripted",
        finish_reason=FinishReason.STOP,
        cited_indexes=(1,),
        grounding_warnings=(),
        intent=result.intent,
        retrieval_attempts=1,
        citations=(a_citation(cited=True),),
        degraded=(),
    )


@pytest.mark.parametrize(
    ("ending", "code", "finish_reason", "state"),
    [
        (Stop.CANCELLED, "RUN_CANCELLED", "cancelled", RunState.CANCELLED),
        (Stop.DISCONNECTED, "CLIENT_DISCONNECTED", "disconnected", RunState.CANCELLED),
        (Stop.TIMED_OUT, "RUN_TIMED_OUT", "timeout", RunState.TIMED_OUT),
        (Stop.SHUTTING_DOWN, "SHUTTING_DOWN", "error", RunState.FAILED),
        (Stop.LEASE_LOST, "LEASE_LOST", "error", RunState.FAILED),
        (Stop.DELETED, "CONVERSATION_NOT_FOUND", "cancelled", RunState.CANCELLED),
        (asyncio.CancelledError(), "RUN_CANCELLED", "cancelled", RunState.CANCELLED),
        (RunTimedOut("slow"), "RUN_TIMED_OUT", "timeout", RunState.TIMED_OUT),
        (ModelUnavailable("the model is away"), "LLM_UNAVAILABLE", "error", RunState.FAILED),
        (ThreadBusy("busy", run_id="r"), "THREAD_BUSY", "error", RunState.FAILED),
        (ValueError("secret"), "INTERNAL_ERROR", "error", RunState.FAILED),
        (MemoryError(), "INTERNAL_ERROR", "error", RunState.FAILED),
    ],
)
def test_every_other_ending_gives_failed(
    ending: Ending, code: str, finish_reason: str, state: RunState
) -> None:
    failed = terminator(ending, message_id="m1")

    assert isinstance(failed, Failed)
    assert (failed.message_id, failed.code, failed.kept_through_id) == ("m1", code, None)
    assert failed.finish_reason == finish_reason
    assert end_state(failed) is state


def test_a_dead_process_s_run_tells_what_is_kept() -> None:
    failed = lost(message_id="m1", kept_through_id=3)

    assert (failed.code, failed.message_id, failed.kept_through_id) == ("RUN_LOST", "m1", 3)
    assert end_state(failed) is RunState.FAILED
    assert finish_reason(failed) is FinishReason.ERROR


def test_a_pause_asks_until_it_expires() -> None:
    asked = Clarification(question="Which?", options=("a", "b"))
    pause = TurnPause(interrupt_id="i1", node="clarify", clarification=asked)

    paused = terminator(pause, message_id="m1", expires_at=NOON)

    assert paused == Paused(
        message_id="m1", interrupt_id="i1", node="clarify", clarification=asked, expires_at=NOON
    )
    assert end_state(paused) is RunState.PAUSED
    assert finish_reason(paused) is FinishReason.PAUSED
    with pytest.raises(ValueError, match="expires"):
        terminator(pause, message_id="m1")


def test_the_text_of_a_known_error_is_shown_and_of_any_other_never() -> None:
    known = terminator(ModelUnavailable("the model is away"), message_id=None)
    unknown = terminator(RuntimeError("def secret(): ..."), message_id=None)

    assert isinstance(known, Failed)
    assert isinstance(unknown, Failed)
    assert known.message == "the model is away"
    assert "secret" not in unknown.message


def test_a_run_enters_its_end_once_and_never_goes_back() -> None:
    moves = {(one, to) for one in Stage for to in Stage if can_move(one, to)}

    assert moves == {
        (Stage.QUEUED, Stage.RUNNING),
        (Stage.QUEUED, Stage.ENDING),
        (Stage.RUNNING, Stage.ENDING),
        (Stage.ENDING, Stage.ENDED),
    }


def test_a_kept_run_ends_once_and_only_a_pause_goes_on() -> None:
    ends = set(RunState) - LIVE_STATES - {RunState.EXPIRED}

    reached = set().union(*(NEXT_STATES[state] for state in LIVE_STATES)) - LIVE_STATES

    assert set(NEXT_STATES) == set(RunState)
    assert reached == ends
    assert {state for state in ends if NEXT_STATES[state]} == {RunState.PAUSED}
    assert end_state(terminator(a_result(), message_id=None)) is RunState.COMPLETED
