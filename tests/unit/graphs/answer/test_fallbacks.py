"""A helper that fails costs its help, never the turn; a cancelled one costs the turn."""

import asyncio
import logging

import pytest

from ibid.domain.answers import HistoryTurn, Intent
from ibid.domain.errors import ModelFaulty, ModelUnavailable
from ibid.graphs.answer.fallback import or_none
from tests.fakes.scripted_model import Decision, ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.turns import deps, passage, read, turn

FAILURES = [ModelUnavailable("down"), ModelFaulty("garbage"), ZeroDivisionError("a bug")]


@pytest.mark.parametrize(
    "decision",
    [
        *FAILURES,
        {},
        {"intent": "conversational"},
        {"intent": "small_talk", "search_query": "run"},
        {"intent": None, "search_query": "run"},
        {"intent": "codebase_question", "search_query": ""},
        {"intent": "codebase_question", "search_query": " \n"},
        {"intent": "codebase_question", "search_query": "x" * 513},
        {"intent": "codebase_question", "search_query": 7},
        {"intent": "conversational", "search_query": ""},
        {"intent": "out_of_scope", "search_query": "x" * 513},
    ],
    ids=repr,
)
async def test_classify_falls_back_whole_to_the_question_as_it_was_asked(
    decision: Decision,
) -> None:
    model = ScriptedModel(decisions={"classify": [decision]})
    search = FakePassageSearch([passage()])

    seen = await read(turn(), deps(model, search))

    assert search.searches[0].query == "How does the app run?"
    assert seen.result.intent is Intent.CODEBASE_QUESTION
    assert seen.result.degraded == ("classify",)
    assert seen.phases[0] == "classifying"


async def test_a_query_of_512_characters_is_taken() -> None:
    query = "x" * 512
    model = ScriptedModel(
        decisions={"classify": [{"intent": "codebase_question", "search_query": query}]}
    )
    search = FakePassageSearch([passage()])

    seen = await read(turn(), deps(model, search))

    assert search.searches[0].query == query
    assert seen.result.degraded == ()


@pytest.mark.parametrize("intent", ["conversational", "out_of_scope"])
async def test_a_long_message_that_is_repeated_unchanged_keeps_its_intent(intent: str) -> None:
    question = "thank you " * 100
    model = ScriptedModel(decisions={"classify": [{"intent": intent, "search_query": question}]})

    seen = await read(turn(question), deps(model))

    assert seen.result.intent.value == intent
    assert seen.result.degraded == ()


@pytest.mark.parametrize(
    "decision", [*FAILURES, {}, {"sufficient": "yes"}, {"sufficient": None, "gap": "x"}], ids=repr
)
async def test_grade_falls_back_to_sufficient(decision: Decision) -> None:
    model = ScriptedModel(decisions={"grade": [decision]})

    seen = await read(turn(), deps(model))

    assert seen.result.retrieval_attempts == 1
    assert seen.result.degraded == ("grade",)
    assert seen.result.warnings == ()


async def test_a_fallback_after_a_bad_verdict_forgets_the_gap_of_other_passages() -> None:
    model = ScriptedModel(
        decisions={
            "grade": [
                {"sufficient": False, "gap": "the port", "better_query": "port"},
                ModelUnavailable("down"),
            ]
        }
    )

    seen = await read(turn(), deps(model))

    assert model.calls("answer")[0].gap == ""
    assert seen.result.warnings == ()
    assert seen.result.degraded == ("grade",)


async def test_a_helper_that_fails_twice_is_named_once_and_in_the_order_they_ran() -> None:
    model = ScriptedModel(
        decisions={
            "classify": [ModelUnavailable("down")],
            "grade": [
                ModelUnavailable("down"),
            ],
        }
    )

    seen = await read(turn(), deps(model))

    assert seen.result.degraded == ("classify", "grade")


async def test_a_verdict_without_text_for_its_gap_leaves_it_empty() -> None:
    model = ScriptedModel(decisions={"grade": [{"sufficient": False, "gap": 3}]})

    await read(turn(), deps(model))

    assert model.calls("answer")[0].gap == ""


async def test_a_helper_that_takes_too_long_falls_back() -> None:
    for_ever = asyncio.Event()
    model = ScriptedModel(before_decision=for_ever.wait)

    seen = await read(turn(), deps(model, helper_timeout_s=0.01))

    assert seen.result.degraded == ("classify", "grade")
    assert seen.result.answer


async def test_a_helper_whose_prompt_can_not_fit_falls_back() -> None:
    # Bytes are tokens here: the rules alone are longer than the context.
    model = ScriptedModel(context=1_000)

    seen = await read(turn(), deps(model))

    assert model.requests == []
    assert seen.phases == ["classifying", "retrieving", "grading", "generating"]
    assert seen.error is not None


async def test_cancellation_is_no_failure_that_a_helper_falls_back_from() -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(or_none(work(), helper="classify", timeout_s=60))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_log_says_which_helper_and_error_and_nothing_of_the_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    private = "xyzzy-question"
    model = ScriptedModel(
        decisions={"classify": [ValueError(private)], "grade": [ModelFaulty(private)]}
    )

    with caplog.at_level(logging.DEBUG, logger="ibid"):
        await read(
            turn(private, history=(HistoryTurn(question=private, answer=private),)),
            deps(model, FakePassageSearch([passage(private)])),
        )

    assert [
        (record.message, record.__dict__["helper"], record.__dict__["error"])
        for record in caplog.records
    ] == [
        ("helper fell back", "classify", "ValueError"),
        ("helper fell back", "grade", "ModelFaulty"),
    ]
    assert private not in caplog.text
