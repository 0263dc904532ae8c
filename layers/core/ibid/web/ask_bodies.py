"""Questions, answers to pauses, ratings and datasets as the Ask surface takes and sends them."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints

from ibid.domain.projects import Project
from ibid.ports.feedback import Feedback
from ibid.runs.turns import OnDisconnect, Strategy
from ibid.web.conversation_bodies import Identifier, Question
from ibid.web.wire import SnakeAsked, SnakeWire, WellFormed


class AskBody(SnakeAsked):
    """A question about a dataset, which is a project; without a thread one is begun.

    `multitask_strategy` says what to do where a run of the thread is under way: refuse, wait for
    its end, or cancel it first. `on_disconnect` says what becomes of the run if the client leaves
    before the end.
    """

    dataset_id: Identifier
    question: Question
    thread_id: Identifier | None = None
    multitask_strategy: Strategy = "reject"
    on_disconnect: OnDisconnect = "stop"


class ResumeBody(SnakeAsked):
    """The answer to the pause of a thread; `interrupt_id` names the pause that is meant.

    A thread that waits has no run under way, so `multitask_strategy` changes nothing here.
    """

    thread_id: Identifier
    message: Question
    interrupt_id: Identifier | None = None
    multitask_strategy: Strategy = "reject"
    on_disconnect: OnDisconnect = "stop"


class FeedbackBody(SnakeAsked):
    """A rating of the thread's last answer; a later one takes its place."""

    thread_id: Identifier
    rating: Literal["up", "down"]
    comment: (
        Annotated[
            str,
            StringConstraints(strip_whitespace=True, min_length=1, max_length=500),
            WellFormed,
        ]
        | None
    ) = None


class RatedBody(SnakeWire):
    """Which answer was rated how."""

    thread_id: str
    run_id: str
    rating: Literal["up", "down"]
    created_at: datetime

    @classmethod
    def of(cls, feedback: Feedback) -> Self:
        """Translate one rating."""
        return cls(
            thread_id=feedback.conversation_id,
            run_id=feedback.run_id,
            rating=feedback.rating,
            created_at=feedback.created_at,
        )


class DatasetBody(SnakeWire):
    """A project that can be asked; counts and commit are those of what is searched."""

    dataset_id: str
    name: str
    path_count: int = Field(ge=0)
    chunk_count: int = Field(ge=0)
    commit_sha: str | None
    created_at: datetime

    @classmethod
    def of(cls, project: Project) -> Self:
        """Translate one project."""
        return cls(
            dataset_id=project.id,
            name=project.name,
            path_count=project.path_count,
            chunk_count=project.chunk_count,
            commit_sha=project.commit_sha,
            created_at=project.created_at,
        )


class DatasetsBody(SnakeWire):
    """One page, which may be empty before the last one; `next_cursor` is null where it ends."""

    items: tuple[DatasetBody, ...]
    next_cursor: str | None
