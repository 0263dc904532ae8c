"""What a turn's nodes are given: fixed for the run, never part of its state."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ibid.domain.passages import Passage
from ibid.domain.projects import ProjectSettings
from ibid.ports.models import ChatModel

Proceed = Callable[[], Awaitable[None]]
"""Awaited before each model call: it returns if the run may go on, else it is cancelled."""


async def unhindered() -> None:
    """Go on: nobody can stop the turn but who reads it."""


class PassageFinder(Protocol):
    """The search of one generation of one project, floor, merging and budget included."""

    async def search(
        self,
        query: str,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        path_prefix: str | None = None,
        limit: int = 12,
        max_characters: int = 24_000,
        timeout_s: float,
    ) -> Sequence[Passage]:
        """Find the passages nearest to a query.

        Args:
            query: 1 to 4,000 characters.
            tenant: Who pays; nobody else's passage is ever found.
            project_id: One of the tenant's projects.
            generation: The only one searched.
            path_prefix: Only files whose path starts with it; None means all.
            limit: Most chunks before neighbours merge, at least 1.
            max_characters: Most characters of all contents together.
            timeout_s: Seconds, embedding included, above 0.

        Returns:
            Best first; empty if nothing is above the floor.

        Raises:
            GenerationGone: The generation was deleted.
            Unavailable: The index or the embedder gave no answer in time.
            EmbeddingModelChanged: The generation's vectors are another model's.
        """


class NearestFiles(Protocol):
    """The paths that a query is nearest to, however far that is."""

    async def __call__(
        self, query: str, *, tenant: str, project_id: str, generation: int, limit: int
    ) -> Sequence[str]:
        """Name at most `limit` paths, best first; arguments as `PassageFinder.search` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDeps:
    """The collaborators and the limits of one turn.

    Attributes:
        permalink: Maps a passage to where it can be read on the web, or None.
        active_generation: Reads the project's active generation now; asked only when the turn's
            own is gone.
        helper_timeout_s: Seconds for each of classify and grade.
        search_timeout_s: Seconds for each retrieval.
        answer_timeout_s: Seconds for the answering call.
        passage_limit: Chunks a retrieval may return.
        max_passage_characters: Of all passages of a retrieval together.
        max_output_tokens: Of an answer; never more than a quarter of the model's context.
        pending_events: How far the graph's stream may run ahead of its reader.
        proceed: Awaited by a node before each model call.
        repinned: The generation that a resumed run searches, whatever its turn began with; None
            for a run that begins its turn.
        nearest_files: Names up to `limit` files that may have to do with a query, best first, for
            one that found nothing; None makes no suggestions of files.
        lease_wait_s: Seconds to wait for the turn's checkpoints while a dead run still holds them:
            a lease's term and a little more.
    """

    search: PassageFinder
    model: ChatModel
    settings: ProjectSettings
    permalink: Callable[[Passage], str | None]
    active_generation: Callable[[], Awaitable[int]]
    helper_timeout_s: float = 20.0
    search_timeout_s: float = 10.0
    answer_timeout_s: float = 180.0
    passage_limit: int = 12
    max_passage_characters: int = 24_000
    max_output_tokens: int = 2_000
    pending_events: int = 256
    proceed: Proceed = unhindered
    repinned: int | None = None
    nearest_files: NearestFiles | None = None
    lease_wait_s: float = 20.0
