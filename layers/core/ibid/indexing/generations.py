"""A generation from its number to the flip, and the clean-up of what it replaces."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ibid.domain.errors import IbidError, ProjectNotFound
from ibid.domain.projects import Job
from ibid.indexing.ending import to_the_end
from ibid.ports.index import GenerationFacts, GenerationWriter, PassageIndex
from ibid.ports.projects import ProjectStore

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Draft:
    """A generation in the making.

    Attributes:
        facts: Given by its seal.
        may_be_active: The store was asked to flip to it.
        is_active: The store has done so.
    """

    number: int
    writer: GenerationWriter
    facts: GenerationFacts | None = None
    may_be_active: bool = False
    is_active: bool = False


class Generations:
    """One project's generations during one job.

    Args:
        index: Where they are.
        projects: Where the pointer to the active one is.
        job: Holds the project's job lease, without which the pointer does not move.
    """

    def __init__(self, index: PassageIndex, projects: ProjectStore, job: Job) -> None:
        self._index = index
        self._projects = projects
        self._job = job

    async def next_number(self, active: int | None) -> int:
        """Return a number above all that were ever seen, so that no reader mistakes it."""
        return max([active or 0, *await self._numbers()]) + 1

    @asynccontextmanager
    async def drafting(self, number: int) -> AsyncIterator[Draft]:
        """Open a generation; whatever ends the block before its flip drops it."""
        writer = await self._index.write(
            tenant=self._job.tenant, project_id=self._job.project_id, generation=number
        )
        draft = Draft(number, writer)
        try:
            yield draft
        finally:
            if not draft.is_active:
                await to_the_end(self._drop(draft))

    async def flip(
        self,
        draft: Draft,
        *,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        """Seal a generation and make it the one that is searched."""
        facts = draft.facts = await draft.writer.seal(
            embedding_signature=embedding_signature,
            main_language=main_language,
            commit_sha=commit_sha,
            source_digest=source_digest,
        )
        await to_the_end(self._activate(draft, facts))
        return facts

    async def keep_only(self, *numbers: int | None) -> None:
        """Delete all other generations, whole or not; repeatable."""
        for number in await self._numbers():
            if number not in numbers:
                await self._delete(number)

    async def _activate(self, draft: Draft, facts: GenerationFacts) -> None:
        draft.may_be_active = True
        await self._projects.activate(
            self._job.project_id,
            tenant=self._job.tenant,
            generation=draft.number,
            job_id=self._job.id,
            embedding_signature=facts.embedding_signature,
            chunk_count=facts.chunk_count,
            path_count=facts.path_count,
            commit_sha=facts.commit_sha,
        )
        draft.is_active = True

    async def _drop(self, draft: Draft) -> None:
        try:
            await draft.writer.abort()
            if draft.may_be_active and await self._is_active(draft.number):
                return
            if draft.facts is not None:
                await self._delete(draft.number)
        except IbidError as error:  # the next job's clean-up finds it
            logger.warning("generation not dropped", extra={"code": error.code})

    async def _is_active(self, number: int) -> bool:
        """Say if the pointer moved although the store's answer was an error."""
        try:
            project = await self._projects.get(self._job.project_id, tenant=self._job.tenant)
        except ProjectNotFound:
            return False
        return project.active_generation == number

    async def _delete(self, number: int) -> None:
        await self._index.delete(
            tenant=self._job.tenant, project_id=self._job.project_id, generation=number
        )

    async def _numbers(self) -> Sequence[int]:
        return await self._index.generations(
            tenant=self._job.tenant, project_id=self._job.project_id
        )
