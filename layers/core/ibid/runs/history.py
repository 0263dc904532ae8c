"""A turn's input, made of the conversation's message rows and of nothing else."""

from collections.abc import Iterable, Sequence

from ibid.domain.answers import FinishReason, HistoryTurn, Resumption, Style, TurnInput
from ibid.domain.conversations import Message, Run
from ibid.domain.errors import ProjectNotReady
from ibid.domain.events import Paused
from ibid.domain.projects import Project
from ibid.runs.turns import NewResumption, NewTurn

MAX_TURNS = 6
MESSAGES_READ = 4 * MAX_TURNS + 1
"""Messages to read for a history: as many turns again may have failed."""


def generation_of(project: Project) -> int:
    """Return the generation that a run of the project searches.

    Raises:
        ProjectNotReady: There is none yet.
    """
    if project.active_generation is None:
        raise ProjectNotReady(f"project {project.id!r} has nothing that can be searched yet")
    return project.active_generation


def turn_input(turn: NewTurn, run: Run, messages: Iterable[Message]) -> TurnInput:
    """Make what the graph starts from.

    Args:
        turn: As it was asked.
        run: That works on it.
        messages: The conversation's last ones, oldest first.
    """
    return TurnInput(
        tenant=run.tenant,
        project_id=run.project_id,
        question=turn.question,
        history=finished_turns(messages)[-MAX_TURNS:],
        generation=generation_of(turn.project),
        reply_language=(
            turn.reply_language
            or turn.conversation.reply_language
            or turn.project.reply_language
            or "en"
        ),
        style=turn.style,
        path_prefix=turn.path_prefix,
        turn_id=run.turn_id,
        run_id=run.id,
    )


def resumption_input(resumption: NewResumption, run: Run, messages: Iterable[Message]) -> TurnInput:
    """Make what the graph goes on with; arguments as for `turn_input`."""
    paused = resumption.paused.terminator
    if not isinstance(paused, Paused):
        raise ValueError("only a paused run is resumed")  # noqa: TRY004 - the value is wrong
    return TurnInput(
        tenant=run.tenant,
        project_id=run.project_id,
        question=resumption.question,
        history=finished_turns(messages)[-MAX_TURNS:],
        generation=generation_of(resumption.project),
        reply_language=(
            resumption.conversation.reply_language or resumption.project.reply_language or "en"
        ),
        style=Style(),
        path_prefix=None,
        turn_id=run.turn_id,
        run_id=run.id,
        resumption=Resumption(interrupt_id=paused.interrupt_id, answer=resumption.answer),
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
