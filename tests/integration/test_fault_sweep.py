"""A fault at the awaits of the real answer path: the graph, the engine, the SQLite store."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ibid.adapters.sqlite.records import SqliteRecords
from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.errors import ModelUnavailable, StoreUnavailable, VectorStoreUnavailable
from ibid.domain.events import Failed, TurnEvent
from ibid.domain.passages import Passage
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.turn import stream_turn
from ibid.runs.turns import Proceed, Work
from tests.fakes.faults import Injector, Kind
from tests.fakes.run_bench import Bench, text
from tests.fakes.samples import scripted_work
from tests.fakes.scripted_model import REPLY, ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.fakes.sweep import (
    EAGER,
    Asked,
    Deed,
    asking,
    asking_and_answering,
    cancelled_elsewhere,
    sweep_once,
)

PIECES = [step for step in REPLY if isinstance(step, str)]
ANSWER = "".join(PIECES)
KINDS: Sequence[Kind] = ("error", "late error", "cancel")
GRAPH = build_answer_graph()
PASSAGE = Passage(
    file_path="src/app.py",
    start_line=1,
    end_line=2,
    language="python",
    symbol="create_app",
    content="def create_app():\n    return App()",
    commit_sha=None,
    score=1.0,
    cosine=None,
)


async def _generation() -> int:
    return 1


def _graph_work(
    model: ScriptedModel | None = None, search: FakePassageSearch | None = None
) -> Work:
    deps = AnswerDeps(
        search=search or FakePassageSearch([PASSAGE]),
        model=model or ScriptedModel(),
        settings=ProjectSettings(),
        permalink=lambda _: None,
        active_generation=_generation,
    )

    def work(
        turn: TurnInput, proceed: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        return stream_turn(GRAPH, turn, deps, proceed)

    return work


async def _suspensions(bench: Bench, deed: Deed) -> int:
    counting = Injector()
    await sweep_once(bench, deed, counting)
    return counting.suspensions


@pytest.mark.parametrize("kind", KINDS)
async def test_a_fault_at_any_suspension_of_the_graph_leaves_one_terminator(kind: Kind) -> None:
    deed = asking(_graph_work())
    count = await _suspensions(await Bench.make(), deed)

    for at in range(1, count + 1):
        await sweep_once(await Bench.make(), deed, Injector(at, kind))


DEEDS: dict[str, Deed] = {
    "plain": asking(scripted_work(*PIECES)),
    "graph": asking(_graph_work()),
    "pause and resume": asking_and_answering,
    "cancel": cancelled_elsewhere,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deed", DEEDS)
async def test_a_fault_at_any_suspension_on_the_real_store_leaves_one_terminator(
    tmp_path: Path, deed: str, kind: Kind
) -> None:
    async def meet(injector: Injector, name: str) -> None:
        records = await SqliteRecords.open(tmp_path / name / "app.sqlite")
        bench = await Bench.make(records)
        bench.engine = bench.another(limits=EAGER)
        await sweep_once(bench, DEEDS[deed], injector)
        await bench.close()
        await records.close()

    counting = Injector()
    await meet(counting, "count")

    for at in range(1, counting.suspensions + 1):
        await meet(Injector(at, kind), f"{at}")


@pytest.mark.parametrize("error", [ModelUnavailable("away"), RuntimeError()])
async def test_a_model_that_fails_at_any_token_leaves_what_was_said(error: Exception) -> None:
    for at in range(1, len(PIECES) + 1):
        asked = Asked(await Bench.make())

        await asked.ask(_graph_work(ScriptedModel(fail_at_token=at, error=error)))

        assert text(asked.entries) == "".join(PIECES[: at - 1])
        assert isinstance(asked.entries[-1].event, Failed)
        await asked.check()


@pytest.mark.parametrize("error", [VectorStoreUnavailable("away"), RuntimeError()])
async def test_a_search_that_fails_ends_the_run(error: Exception) -> None:
    asked = Asked(await Bench.make())

    await asked.ask(_graph_work(search=FakePassageSearch(error)))

    end = asked.entries[-1].event
    assert isinstance(end, Failed)
    assert end.code in {"VECTOR_STORE_UNAVAILABLE", "INTERNAL_ERROR"}
    await asked.check()


async def test_a_store_that_fails_at_any_call_leaves_one_terminator(tmp_path: Path) -> None:
    for at in range(1, 13):
        calls = 0

        async def fail(_: str, at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                raise StoreUnavailable("away")

        records = await SqliteRecords.open(tmp_path / f"{at}" / "app.sqlite")
        bench = await Bench.make(records)
        bench.engine = bench.another(at=fail, limits=EAGER)
        asked = Asked(bench)

        try:
            await asked.ask(_graph_work())
        except StoreUnavailable:
            assert asked.shown == {}

        assert calls >= at
        await asked.check()
        await bench.close()
        await records.close()
