"""Deleting a conversation or a project, so that deleted means gone."""

from collections.abc import AsyncIterator

from ibid.domain.conversations import Conversation
from ibid.domain.errors import ConversationNotFound
from ibid.domain.principals import Principal
from ibid.domain.projects import Project
from ibid.ports.checkpoints import CheckpointThreads
from ibid.ports.conversations import ConversationStore
from ibid.ports.projects import ProjectStore
from ibid.ports.runs import RunStore
from ibid.runs.engine import RunEngine

_PAGE = 200


class Deletion:
    """Deletes what runs have left, after it has stopped them; repeatable until it succeeds.

    The app store removes a conversation with all that hangs on it at once, and from then on
    nothing can be kept in it. The checkpoints are in another store, so their threads are deleted
    before it, else nobody would know their names, and once more after it, for what a run that was
    still stopping, or had just begun, has written meanwhile.

    Args:
        engine: Stops the runs of all processes.
        projects: Deleted with all their conversations.
        conversations: Deleted with messages, runs, journals, ratings and idempotency records.
        runs: They name the turns.
        checkpoints: A thread for each turn that could pause.
    """

    def __init__(
        self,
        *,
        engine: RunEngine,
        projects: ProjectStore,
        conversations: ConversationStore,
        runs: RunStore,
        checkpoints: CheckpointThreads,
    ) -> None:
        self._engine = engine
        self._projects = projects
        self._conversations = conversations
        self._runs = runs
        self._checkpoints = checkpoints

    async def conversation(self, conversation: Conversation) -> None:
        """Cancel the conversation's runs in every process, and delete all that is its.

        Raises:
            ConversationNotFound: There is none of this id.
            StoreUnavailable: A store gave no answer; ask again.
        """
        await self._engine.cancel(tenant=conversation.tenant, conversation_id=conversation.id)
        turns = {turn async for turn in self._turns(conversation)}
        await self._delete_threads(turns)
        principal = Principal(tenant=conversation.tenant, subject=conversation.subject)
        begun = await self._conversations.delete(conversation.id, principal=principal)
        await self._delete_threads(turns | set(begun))

    async def project(self, project: Project) -> None:
        """Cancel the project's runs in every process, and delete it with all its conversations.

        What the index and the object store hold of it is not deleted here.

        Raises:
            StoreUnavailable: A store gave no answer; ask again.
        """
        await self._engine.cancel(tenant=project.tenant, project_id=project.id)
        turns = {
            turn
            async for conversation in self._conversations_of(project)
            async for turn in self._turns(conversation)
        }
        await self._delete_threads(turns)
        begun = await self._projects.delete(project.id, tenant=project.tenant)
        await self._delete_threads(turns | set(begun))

    async def _delete_threads(self, turns: set[str]) -> None:
        for turn in turns:
            await self._checkpoints.adelete_thread(turn)

    async def _turns(self, conversation: Conversation) -> AsyncIterator[str]:
        principal = Principal(tenant=conversation.tenant, subject=conversation.subject)
        cursor = None
        while True:
            try:
                page = await self._runs.list_for(
                    conversation.id, principal=principal, cursor=cursor, limit=_PAGE
                )
            except ConversationNotFound:
                return
            for run in page.items:
                yield run.turn_id
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _conversations_of(self, project: Project) -> AsyncIterator[Conversation]:
        """Yield the members' conversations about the project: nobody else can have one."""
        for subject in project.members:
            principal = Principal(tenant=project.tenant, subject=subject)
            cursor = None
            while True:
                page = await self._conversations.list_for(
                    principal=principal, cursor=cursor, limit=_PAGE
                )
                for conversation in page.items:
                    if conversation.project_id == project.id:
                        yield conversation
                cursor = page.next_cursor
                if cursor is None:
                    break
