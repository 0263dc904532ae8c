"""What the tests of the answering graph share: values with sensible rest, and a turn run whole."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from ibid.domain.answers import HistoryTurn, Style, TurnInput, TurnResult
from ibid.domain.events import CitationsFound, StatusChanged, TokenDelta, TurnEvent
from ibid.domain.passages import Passage
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps
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
    )


@dataclass
class Seen:
    """What a reader of a turn saw."""

    events: list[TurnEvent] = field(default_factory=list)
    results: list[TurnResult] = field(default_factory=list)
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
        (result,) = self.results
        return result


async def read(
    asked: TurnInput, given: AnswerDeps, between: Callable[[], Awaitable[object]] | None = None
) -> Seen:
    """Read a turn to its end, pausing between events; the turn's error is kept, not raised."""
    seen = Seen()
    async with aclosing(stream_turn(GRAPH, asked, given)) as items:
        try:
            async for item in items:
                assert not seen.results, "nothing follows the result"
                if isinstance(item, TurnResult):
                    seen.results.append(item)
                else:
                    seen.events.append(item)
                if between is not None:
                    await between()
        except Exception as error:  # noqa: BLE001 - the tests look at it
            seen.error = error
    return seen
