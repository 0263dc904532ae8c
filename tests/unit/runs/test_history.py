"""A turn starts from the conversation's finished turns, six at most."""

from dataclasses import replace

import pytest

from ibid.domain.answers import FinishReason, HistoryTurn, Style
from ibid.domain.conversations import Message, RunState
from ibid.domain.errors import ProjectNotReady
from ibid.runs.history import finished_turns, turn_input
from ibid.runs.terminator import Stop, terminator
from tests.fakes.records import FakeRecords
from tests.fakes.samples import (
    NOON,
    a_conversation,
    a_project,
    a_question,
    a_result,
    a_run,
    a_turn,
    an_answer,
)


async def _records(*finish_reasons: FinishReason) -> FakeRecords:
    records = FakeRecords()
    await records.projects.create(a_project())
    await records.conversations.create(a_conversation())
    for number, finish_reason in enumerate(finish_reasons):
        run = a_run(f"r{number}")
        await records.runs.begin(run, question=a_question(run, f"q{number}"), title="t")
        is_done = finish_reason is FinishReason.STOP
        ending = a_result() if is_done else Stop.CANCELLED
        await records.runs.end(
            run.id,
            tenant="acme",
            owner="me",
            state=RunState.COMPLETED,
            terminator=terminator(ending, message_id=run.message_id),
            event_id=1,
            answer=replace(an_answer(run, f"a{number}"), finish_reason=finish_reason),
            at=NOON,
        )
    return records


def _turns(*numbers: int) -> list[HistoryTurn]:
    return [HistoryTurn(question=f"q{number}", answer=f"a{number}") for number in numbers]


async def test_the_last_six_turns_that_finished_come_oldest_first() -> None:
    stop, error = FinishReason.STOP, FinishReason.ERROR
    records = await _records(stop, stop, stop, error, stop, stop, error, stop, stop)
    run = a_run("now")
    await records.runs.begin(run, question=a_question(run, "now?"), title="t")

    made = await turn_input(a_turn(question="now?"), records.conversations)

    assert list(made.history) == _turns(1, 2, 4, 5, 7, 8)
    assert made.question == "now?"


async def test_an_answer_that_did_not_stop_is_no_history() -> None:
    others = [reason for reason in FinishReason if reason is not FinishReason.STOP]
    records = await _records(*others)

    made = await turn_input(a_turn(), records.conversations)

    assert list(made.history) == []


def test_an_answer_whose_question_was_not_read_is_no_turn() -> None:
    run = a_run()
    messages: list[Message] = [an_answer(run)]

    assert list(finished_turns(messages)) == []


async def test_the_turn_carries_what_was_asked_for() -> None:
    records = await _records()
    style = Style(detail="brief")
    turn = replace(
        a_turn(project=replace(a_project(), active_generation=7)),
        style=style,
        path_prefix="src/",
    )

    made = await turn_input(turn, records.conversations)

    assert (made.tenant, made.project_id, made.generation) == ("acme", "p1", 7)
    assert (made.style, made.path_prefix) == (style, "src/")


@pytest.mark.parametrize(
    ("asked", "conversation", "project", "expected"),
    [
        (None, None, None, "en"),
        (None, None, "pt-BR", "pt-BR"),
        (None, "es-419", "pt-BR", "es-419"),
        ("en", "es-419", "pt-BR", "en"),
    ],
)
async def test_the_reply_language_is_the_nearest_that_is_set(
    asked: str | None, conversation: str | None, project: str | None, expected: str
) -> None:
    records = await _records()
    turn = a_turn(
        project=replace(a_project(), reply_language=project),
        conversation=replace(a_conversation(), reply_language=conversation),
    )

    made = await turn_input(replace(turn, reply_language=asked), records.conversations)

    assert made.reply_language == expected


async def test_a_project_without_a_generation_gives_no_turn() -> None:
    records = await _records()
    turn = a_turn(project=replace(a_project(), active_generation=None))

    with pytest.raises(ProjectNotReady):
        await turn_input(turn, records.conversations)
