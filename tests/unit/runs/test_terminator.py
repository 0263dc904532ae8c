"""Every ending gives one terminator, and none of them tells what must not be told."""

import asyncio

import pytest

from ibid.domain.answers import FinishReason
from ibid.domain.conversations import RunState
from ibid.domain.errors import ModelUnavailable, RunTimedOut, ThreadBusy
from ibid.domain.events import Done, Failed
from ibid.runs.stages import Stage, can_move, end_state, live_state
from ibid.runs.terminator import Ending, Stop, terminator
from tests.fakes.samples import a_citation, a_result


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
        (Stop.PROCESS_DIED, "RUN_LOST", "error", RunState.FAILED),
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
    failed = terminator(ending, message_id="m1", kept_through_id=3)

    assert isinstance(failed, Failed)
    assert (failed.message_id, failed.code, failed.finish_reason, failed.kept_through_id) == (
        "m1",
        code,
        finish_reason,
        3,
    )
    assert end_state(failed) is state


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
    assert end_state(terminator(a_result(), message_id=None)) is RunState.COMPLETED
    assert {live_state(stage) for stage in Stage} == {RunState.QUEUED, RunState.RUNNING}
    assert live_state(Stage.QUEUED) is RunState.QUEUED
