"""A turn's input, made of the conversation's message rows and of nothing else."""

from collections.abc import Iterable, Sequence

from ibid.domain.answers import FinishReason, HistoryTurn, TurnInput
from ibid.domain.conversations import Message
from ibid.domain.errors import ProjectNotReady
from ibid.ports.conversations import ConversationStore
from ibid.runs.turns import NewTurn

MAX_TURNS = 6
_MESSAGES_READ = 4 * MAX_TURNS + 1  # as many turns again may have failed


async def turn_input(turn: NewTurn, conversations: ConversationStore) -> TurnInput:
    """Read the history and make what the graph starts from.

    Raises:
        ConversationNotFound: It was deleted meanwhile.
        ProjectNotReady: The project has no generation that can be searched.
        StoreUnavailable: The history can't be read.
    """
    project, conversation = turn.project, turn.conversation
    if project.active_generation is None:
        raise ProjectNotReady(f"project {project.id!r} has nothing that can be searched yet")
    messages = await conversations.latest_messages(
        conversation.id, principal=turn.principal, limit=_MESSAGES_READ
    )
    return TurnInput(
        tenant=turn.principal.tenant,
        project_id=project.id,
        question=turn.question,
        history=finished_turns(messages)[-MAX_TURNS:],
        generation=project.active_generation,
        reply_language=(
            turn.reply_language or conversation.reply_language or project.reply_language or "en"
        ),
        style=turn.style,
        path_prefix=turn.path_prefix,
    )


def finished_turns(messages: Iterable[Message]) -> Sequence[HistoryTurn]:
    """Pair questions with their answers, in order; only answers that ended by `stop`."""
    questions: dict[str, str] = {}
    turns: list[HistoryTurn] = []
    for message in messages:
        if message.role == "user":
            questions[message.run_id] = message.content
        elif message.finish_reason is FinishReason.STOP and message.run_id in questions:
            turns.append(HistoryTurn(question=questions[message.run_id], answer=message.content))
    return turns
