"""Makes what answers turns: the graphs, on the search, the model and the project's settings."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from ibid.domain.answers import TurnInput, TurnPause, TurnResult
from ibid.domain.conversations import Run
from ibid.domain.errors import NothingPending
from ibid.domain.events import Paused, TurnEvent
from ibid.domain.passages import Passage
from ibid.domain.permalinks import permalink
from ibid.domain.projects import Project
from ibid.domain.readiness import check_ready
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.pauses import pending_pause
from ibid.graphs.answer.turn import stream_turn
from ibid.ports.models import ChatModel
from ibid.ports.projects import ProjectStore
from ibid.retrieval.search import PassageSearch
from ibid.runs.turns import Proceed, Work


class Answering:
    """The graphs of one process, by name.

    Args:
        search: Finds passages.
        model: Answers.
        saver: Keeps the steps of the graphs that can pause.
        projects: Tells which generation is the active one.
        signature: Names the vector space of the embedder in use.
        search_timeout_s: Seconds for each search.
        lease_wait_s: Seconds to wait for a turn's checkpoints while a dead run holds them.
    """

    def __init__(
        self,
        *,
        search: PassageSearch,
        model: ChatModel,
        saver: BaseCheckpointSaver[Any],
        projects: ProjectStore,
        signature: Callable[[], str | None],
        search_timeout_s: float = 10.0,
        lease_wait_s: float = 20.0,
    ) -> None:
        self._search = search
        self._model = model
        self._projects = projects
        self._signature = signature
        self._search_timeout_s = search_timeout_s
        self._lease_wait_s = lease_wait_s
        self._graphs = {
            "messages": build_answer_graph(),
            "ask": build_answer_graph(clarify=True, checkpointer=saver),
        }

    def work(self, project: Project, *, graph: str = "messages") -> Work:
        """Make what answers the turns of one graph about one project."""
        compiled = self._graphs[graph]
        deps = self._deps(project)

        def work(
            turn: TurnInput, proceed: Proceed
        ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
            return stream_turn(compiled, turn, deps, proceed)

        return work

    async def check_pause(self, run: Run) -> None:
        """See that an answer to a paused run would be heard.

        Raises:
            GraphChanged: The graph that is deployed now has no such node.
            NothingPending: The run does not wait, or nothing of its turn is kept.
            InterruptStale: Its turn waits for the answer to another question.
        """
        pause = run.terminator
        if not isinstance(pause, Paused):
            raise NothingPending(f"run {run.id!r} does not wait for an answer")
        await pending_pause(
            self._graphs[run.graph],
            run.turn_id,
            interrupt_id=pause.interrupt_id,
            node=pause.node,
            answered=run.resumed_by is not None,
        )

    def _deps(self, project: Project) -> AnswerDeps:
        async def active_generation() -> int:
            now = await self._projects.get(project.id, tenant=project.tenant)
            return check_ready(now, embedding_signature=self._signature())

        async def nearest_files(
            query: str, *, tenant: str, project_id: str, generation: int, limit: int
        ) -> Sequence[str]:
            ranked = await self._search.rank_files(
                query,
                limit=limit,
                tenant=tenant,
                project_id=project_id,
                generation=generation,
                timeout_s=self._search_timeout_s,
            )
            return [file.file_path for file in ranked]

        def link(passage: Passage) -> str | None:
            return permalink(project.source, passage)

        return AnswerDeps(
            search=self._search,
            model=self._model,
            settings=project.settings,
            permalink=link,
            active_generation=active_generation,
            search_timeout_s=self._search_timeout_s,
            nearest_files=nearest_files,
            lease_wait_s=self._lease_wait_s,
        )
