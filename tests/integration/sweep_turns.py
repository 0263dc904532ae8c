"""The turns of a kill sweep that ask back: scripted ones, and those of the graph `ask`."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Run
from ibid.domain.events import Paused, TurnEvent
from ibid.graphs.answer.build import AnswerGraph, build_answer_graph
from ibid.graphs.answer.pauses import pending_pause
from ibid.graphs.answer.turn import stream_turn
from ibid.runs.turns import Proceed, Work
from tests.fakes.ministack import client_config
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.fakes.works import asking_work
from tests.unit.graphs.answer.asking import ASKED, TIED
from tests.unit.graphs.answer.turns import deps

_TERM_S, _LEASE_WAIT_S = 1.0, 60.0  # of a turn's checkpoints


class Turns:
    """Scripted ones.

    Attributes:
        graph: Whose they are.
        question: It has two readings.
        answer: Chooses one.
    """

    graph = "messages"
    question = "Where is the app made?"
    answer = "the first"

    def work(self, *tokens: str) -> Work:
        """Make what asks back, and once it is answered says these tokens."""
        return asking_work(*tokens)

    async def check(self, paused: Run) -> None:
        """See that the answer to a paused run would be heard."""
        assert isinstance(paused.terminator, Paused)


class GraphTurns(Turns):
    """Those of the real graph on a real saver; the model and the search are scripted."""

    graph = "ask"
    question = ASKED
    answer = "src/config.py: load"

    def __init__(self, graph: AnswerGraph) -> None:
        self._graph = graph

    def work(self, *tokens: str) -> Work:
        """Make a turn of the graph."""

        def work(
            turn: TurnInput, proceed: Proceed
        ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
            model, search = ScriptedModel([*tokens, " [1]."]), FakePassageSearch(TIED)
            given = deps(model, search, lease_wait_s=_LEASE_WAIT_S)
            return stream_turn(self._graph, turn, given, proceed)

        return work

    async def check(self, paused: Run) -> None:
        """Do as the server does before it takes an answer."""
        pause = paused.terminator
        assert isinstance(pause, Paused)
        await pending_pause(
            self._graph,
            paused.turn_id,
            interrupt_id=pause.interrupt_id,
            node=pause.node,
            answered=paused.resumed_by is not None,
        )


@asynccontextmanager
async def _scripted(_: dict[str, str]) -> AsyncIterator[Turns]:
    yield Turns()


@asynccontextmanager
async def _embedded(place: dict[str, str]) -> AsyncIterator[Turns]:
    saver = await EmbeddedSaver.open(Path(place["checkpoints"]), term_s=_TERM_S)
    try:
        yield GraphTurns(build_answer_graph(clarify=True, checkpointer=saver))
    finally:
        await saver.close()


@asynccontextmanager
async def _dynamodb(place: dict[str, str]) -> AsyncIterator[Turns]:
    saver = DynamoSaver(
        checkpoints_table_name=place["checkpoints"],
        writes_table_name=place["writes"],
        client_config=client_config(place["url"]),
        term_s=_TERM_S,
    )
    try:
        yield GraphTurns(build_answer_graph(clarify=True, checkpointer=saver))
    finally:
        saver.close()


OpenTurns = Callable[[dict[str, str]], AbstractAsyncContextManager[Turns]]


def open_turns(store: str, deed: str) -> OpenTurns:
    """Return what opens the turns of a deed in one store."""
    if deed != "ask":
        return _scripted
    return {"sqlite": _embedded, "dynamodb": _dynamodb}[store]
