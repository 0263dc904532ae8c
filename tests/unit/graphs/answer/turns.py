"""What the tests of the answering graph share: values with sensible rest, and a turn run whole."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from ibid.domain.answers import (
    HistoryTurn,
    Resumption,
    Style,
    TurnInput,
    TurnPause,
    TurnResult,
)
from ibid.domain.events import CitationsFound, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Passage
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import AnswerGraph, build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps, NearestFiles, Proceed, unhindered
from ibid.graphs.answer.turn import stream_turn
from ibid.ports.models import ChatModel
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch

GRAPH = build_answer_graph()
RUN = 'def run(port: int) -> None:\n    """Serve on a port."""\n    serve(port)'


def passage(
    content: str = RUN,
    *,
    file_path: str = "src/app.py",
    start_line: int = 10,
    symbol: str = "App.run",
    score: float = 1.0,
) -> Passage:
    return Passage(
        file_path=file_path,
        start_line=start_line,
        end_line=start_line + content.count("\n"),
        language="python",
        symbol=symbol,
        content=content,
        commit_sha=None,
        score=score,
        cosine=None,
    )


def turn(
    question: str = "How does the app run?",
    *,
    history: tuple[HistoryTurn, ...] = (),
    reply_language: str = "en",
    style: Style | None = None,
    path_prefix: str | None = None,
    turn_id: str = "t-1",
) -> TurnInput:
    return TurnInput(
        tenant="acme",
        project_id="p1",
        question=question,
        history=history,
        generation=3,
        reply_language=reply_language,
        style=style or Style(),
        path_prefix=path_prefix,
        turn_id=turn_id,
        run_id=turn_id,
    )


def resumed(
    asked: TurnInput, pause: TurnPause | str, answer: str, *, generation: int = 3, run: str = "t-2"
) -> TurnInput:
    """The turn again, in another run that answers a pause."""
    interrupt_id = pause if isinstance(pause, str) else pause.interrupt_id
    return replace(
        asked,
        run_id=run,
        generation=generation,
        resumption=Resumption(interrupt_id=interrupt_id, answer=answer),
    )


async def _generation_4() -> int:
    return 4


def deps(
    model: ChatModel | None = None,
    search: FakePassageSearch | None = None,
    *,
    settings: ProjectSettings | None = None,
    active_generation: Callable[[], Awaitable[int]] = _generation_4,
    helper_timeout_s: float = 20.0,
    max_output_tokens: int = 2_000,
    pending_events: int = 256,
    nearest_files: NearestFiles | None = None,
    lease_wait_s: float = 5.0,
) -> AnswerDeps:
    return AnswerDeps(
        search=search or FakePassageSearch([passage()]),
        model=model or ScriptedModel(),
        settings=settings or ProjectSettings(),
        permalink=lambda found: f"https://host/{found.file_path}",
        active_generation=active_generation,
        helper_timeout_s=helper_timeout_s,
        max_output_tokens=max_output_tokens,
        pending_events=pending_events,
        nearest_files=nearest_files,
        lease_wait_s=lease_wait_s,
    )


@dataclass
class Seen:
    """What a reader of a turn saw."""

    events: list[TurnEvent] = field(default_factory=list)
    results: list[TurnResult] = field(default_factory=list)
    pauses: list[TurnPause] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenDelta))

    @property
    def phases(self) -> list[str]:
        return [event.phase.value for event in self.events if isinstance(event, StatusChanged)]

    @property
    def sources(self) -> list[CitationsFound]:
        return [event for event in self.events if isinstance(event, CitationsFound)]

    @property
    def result(self) -> TurnResult:
        assert self.error is None, self.error
        (result,) = self.results
        return result

    @property
    def pause(self) -> TurnPause:
        assert self.error is None, self.error
        (pause,) = self.pauses
        return pause


async def read(
    asked: TurnInput,
    given: AnswerDeps,
    between: Callable[[], Awaitable[object]] | None = None,
    *,
    graph: AnswerGraph = GRAPH,
    proceed: Proceed = unhindered,
) -> Seen:
    """Read a turn to its end, pausing between events; the turn's error is kept, not raised."""
    seen = Seen()
    async with aclosing(stream_turn(graph, asked, given, proceed)) as items:
        try:
            async for item in items:
                assert not seen.results, "nothing follows the result"
                assert not seen.pauses, "nothing follows the pause"
                if isinstance(item, TurnResult):
                    seen.results.append(item)
                elif isinstance(item, TurnPause):
                    seen.pauses.append(item)
                else:
                    seen.events.append(item)
                if between is not None:
                    await between()
        except Exception as error:  # noqa: BLE001 - the tests look at it
            seen.error = error
    return seen
