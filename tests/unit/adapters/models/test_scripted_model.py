"""The script does what other tests rely on."""

import asyncio
from contextlib import aclosing

import pytest

from ibid.domain.errors import AnswerEmpty, ModelFaulty, ModelUnavailable
from ibid.ports.models import ModelRequest, ReplyEnd, Task, TextDelta
from tests.fakes.scripted_model import ScriptedModel


def ask(task: Task) -> ModelRequest:
    return ModelRequest(task=task, messages=(), question="q")


async def said(model: ScriptedModel) -> str:
    items = [item async for item in model.stream(ask("answer"))]
    assert isinstance(items[-1], ReplyEnd)
    return "".join(item.text for item in items if isinstance(item, TextDelta))


async def test_each_call_takes_the_next_script_and_the_last_one_stays() -> None:
    model = ScriptedModel(replies=[["one"], ["t", "wo"]])

    assert [await said(model) for _ in range(3)] == ["one", "two", "two"]


async def test_a_step_that_is_a_call_is_awaited() -> None:
    gate = asyncio.Event()
    model = ScriptedModel(["a", gate.wait, "b"])
    task = asyncio.create_task(said(model))
    await asyncio.sleep(0)

    assert model.open_streams == 1
    gate.set()
    assert await task == "ab"
    assert (model.open_streams, model.closed_early) == (0, 0)


async def test_it_fails_at_the_token_it_is_told() -> None:
    model = ScriptedModel(["a", "b"], fail_at_token=3)

    assert await said(model) == "ab"
    with pytest.raises(ModelUnavailable):
        await said(model)

    assert model.closed_early == 1


async def test_a_step_that_is_an_error_is_raised() -> None:
    with pytest.raises(ModelFaulty):
        await said(ScriptedModel(["a", ModelFaulty("x")]))


async def test_a_script_without_text_is_empty() -> None:
    with pytest.raises(AnswerEmpty):
        await said(ScriptedModel([]))


async def test_a_stream_that_is_left_is_counted() -> None:
    model = ScriptedModel()

    async with aclosing(model.stream(ask("answer"))) as stream:  # type: ignore[type-var]  # the port promises less
        await anext(stream)

    assert (model.open_streams, model.closed_early) == (0, 1)


async def test_decisions_are_scripted_by_task_or_sensible() -> None:
    model = ScriptedModel(
        decisions={
            "grade": [
                {"sufficient": False},
                lambda request: {"gap": request.question},
                ModelFaulty("x"),
            ]
        }
    )

    assert await model.decide(ask("classify")) == {
        "intent": "codebase_question",
        "search_query": "q",
    }
    assert await model.decide(ask("grade")) == {"sufficient": False}
    assert await model.decide(ask("grade")) == {"gap": "q"}
    with pytest.raises(ModelFaulty):
        await model.decide(ask("grade"))
    assert len(model.calls("grade")) == 3


async def test_it_fails_at_the_decision_it_is_told_after_its_pause() -> None:
    paused: list[bool] = []

    async def pause() -> None:
        paused.append(True)

    model = ScriptedModel(fail_at_decision=2, before_decision=pause)

    assert await model.decide(ask("grade")) == {"sufficient": True, "gap": "", "better_query": ""}
    with pytest.raises(ModelUnavailable):
        await model.decide(ask("grade"))
    assert len(paused) == 2
