"""Every failure Ibid names.

IbidError
├── Refused  before the first byte: a status code
│   ├── ValidationFailed 422
│   ├── Unauthorized 401
│   ├── InsufficientRole 403
│   ├── NotFound 404
│   │   ├── ProjectNotFound
│   │   ├── ConversationNotFound
│   │   ├── RunNotFound
│   │   ├── JobNotFound
│   │   ├── UploadNotFound
│   │   └── FeedbackTargetNotFound
│   ├── ProjectNotReady 409
│   ├── EmbeddingModelChanged 409
│   ├── ThreadBusy 409
│   ├── PausePending 409  a new turn while the thread's last one waits for an answer
│   ├── NothingPending 409
│   ├── InterruptStale 409
│   ├── PauseResolved 409  a second decision
│   ├── GraphChanged 409
│   ├── PauseExpired 410
│   ├── JournalExpired 410
│   ├── KeyReused 422  an Idempotency-Key with another request
│   ├── KeyInUse 409  an Idempotency-Key whose first request is not through
│   └── ShuttingDown 503
├── Unavailable  a dependency failed: worth another try (503 before the first byte)
│   ├── StoreUnavailable
│   ├── ObjectStoreUnavailable
│   ├── VectorStoreUnavailable
│   │   └── GenerationDamaged
│   ├── QueueUnavailable
│   ├── EmbedderUnavailable
│   └── ModelUnavailable
├── TurnFailed  the same try would fail again
│   ├── GenerationGone
│   ├── PromptTooLong
│   ├── ModelRefused
│   ├── AnswerTruncated
│   ├── AnswerEmpty
│   ├── ModelFaulty
│   ├── RunTimedOut
│   └── RunLost
├── SourceRejected  a source that can't be indexed, with the reason
├── CheckpointFailed  a checkpoint saver can't go on with a thread
│   ├── CheckpointTooLarge
│   ├── CheckpointCorrupt
│   ├── CheckpointStale
│   ├── ThreadGone
│   └── ThreadLeased
├── LeaseLost  another writer owns the run, the job or the thread
├── ObjectMissing
├── ObjectExists
└── Misconfigured  a setting or a file on disk that stops the start
    └── SchemaTooNew

A message says what and which (ids with `!r`); it never holds a secret, a question, an answer or
an excerpt, since it reaches logs and clients.
"""

from typing import ClassVar


class IbidError(Exception):
    """The root: `code` is stable and for programs, `retryable` says if another try may help."""

    code: ClassVar[str] = "INTERNAL_ERROR"
    retryable: ClassVar[bool] = False


class Refused(IbidError):
    """Turned away before the first byte, with the HTTP `status` that says how."""

    status: ClassVar[int] = 400


class ValidationFailed(Refused):
    """The request is malformed; `fields` maps each bad field to what is wrong with it."""

    code = "VALIDATION_ERROR"
    status = 422

    def __init__(self, message: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {}


class Unauthorized(Refused):
    """Nobody knows who is asking."""

    code = "UNAUTHORIZED"
    status = 401


class InsufficientRole(Refused):
    """A member of the thing, without the role that the call needs."""

    code = "INSUFFICIENT_ROLE"
    status = 403


class NotFound(Refused):
    """No such thing, or none that the caller may know of."""

    code = "NOT_FOUND"
    status = 404


class ProjectNotFound(NotFound):
    """No project of this id among the caller's."""

    code = "PROJECT_NOT_FOUND"


class ConversationNotFound(NotFound):
    """No conversation of this id among the caller's."""

    code = "CONVERSATION_NOT_FOUND"


class RunNotFound(NotFound):
    """No run of this id among the caller's."""

    code = "RUN_NOT_FOUND"


class JobNotFound(NotFound):
    """No indexing job of this id in the caller's projects."""

    code = "JOB_NOT_FOUND"


class UploadNotFound(NotFound):
    """No finished upload of this id in the project."""

    code = "UPLOAD_NOT_FOUND"


class FeedbackTargetNotFound(NotFound):
    """Nothing of the thread can be rated: no answer stands there yet."""

    code = "FEEDBACK_TARGET_NOT_FOUND"


class ProjectNotReady(Refused):
    """The project has no generation that can be searched yet."""

    code = "PROJECT_NOT_READY"
    status = 409
    retryable = True


class EmbeddingModelChanged(Refused):
    """The project was indexed with another embedding model than the one in use."""

    code = "EMBEDDING_MODEL_CHANGED"
    status = 409


class ThreadBusy(Refused):
    """A run is under way on the thread; `run_id` names it."""

    code = "THREAD_BUSY"
    status = 409
    retryable = True

    def __init__(self, message: str, *, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class RunNumberTaken(IbidError):
    """Another run of the conversation has begun since it was read; read it again and try again."""

    code = "RUN_NUMBER_TAKEN"
    retryable = True


class PausePending(Refused):
    """The thread's last run waits for an answer; answer it, or cancel that run.

    `run_id` and `interrupt_id` name the pause.
    """

    code = "PAUSE_PENDING"
    status = 409

    def __init__(self, message: str, *, run_id: str, interrupt_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.interrupt_id = interrupt_id


class NothingPending(Refused):
    """No run of the thread waits for an answer."""

    code = "NOTHING_PENDING"
    status = 409


class InterruptStale(Refused):
    """The answer names another pause than the one that is pending."""

    code = "INTERRUPT_STALE"
    status = 409


class PauseResolved(Refused):
    """The pause has been answered already: `run_id` is the run that goes on, `state` its state."""

    code = "PAUSE_RESOLVED"
    status = 409

    def __init__(self, message: str, *, run_id: str, state: str) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.state = state


class GraphChanged(Refused):
    """The graph that is deployed now has no such node as the one that waits."""

    code = "GRAPH_CHANGED"
    status = 409


class PauseExpired(Refused):
    """Nobody answered in time; ask again."""

    code = "PAUSE_EXPIRED"
    status = 410


class JournalExpired(Refused):
    """The run's events are not kept any more; its messages are."""

    code = "JOURNAL_EXPIRED"
    status = 410


class KeyReused(Refused):
    """The Idempotency-Key was used with another request before."""

    code = "IDEMPOTENCY_KEY_REUSED"
    status = 422


class KeyInUse(Refused):
    """The first request with this Idempotency-Key is still under way; try again soon."""

    code = "IDEMPOTENCY_KEY_IN_USE"
    status = 409
    retryable = True


class ShuttingDown(Refused):
    """The server is stopping and starts no new run."""

    code = "SHUTTING_DOWN"
    status = 503
    retryable = True


class Unavailable(IbidError):
    """A dependency did not do its part; another try may succeed."""

    code = "UNAVAILABLE"
    retryable = True


class StoreUnavailable(Unavailable):
    """The app store gave no answer in time, or a faulty one."""

    code = "STORE_UNAVAILABLE"


class ObjectStoreUnavailable(Unavailable):
    """The object store gave no answer in time, or a faulty one."""

    code = "OBJECT_STORE_UNAVAILABLE"


class VectorStoreUnavailable(Unavailable):
    """The passage index gave no answer in time, or a faulty one."""

    code = "VECTOR_STORE_UNAVAILABLE"


class GenerationDamaged(VectorStoreUnavailable):
    """What is kept of one generation can't be read; indexing again makes another one."""


class QueueUnavailable(Unavailable):
    """The queue did not take a message for certain."""

    code = "QUEUE_UNAVAILABLE"


class EmbedderUnavailable(Unavailable):
    """The embedding model gave no answer in time, or a faulty one."""

    code = "EMBEDDER_UNAVAILABLE"


class ModelUnavailable(Unavailable):
    """The language model gave no answer in time, or its stream broke."""

    code = "LLM_UNAVAILABLE"


class TurnFailed(IbidError):
    """A turn that can't be finished as it was asked."""

    code = "TURN_FAILED"


class GenerationGone(TurnFailed):
    """The generation that was to be searched has been deleted."""

    code = "GENERATION_GONE"
    retryable = True


class PromptTooLong(TurnFailed):
    """The question, history and one passage do not fit the model's context."""

    code = "PROMPT_TOO_LONG"


class ModelRefused(TurnFailed):
    """The model, or a filter in front of it, declined to answer."""

    code = "LLM_REFUSED"


class AnswerTruncated(TurnFailed):
    """The model reached its output limit before the answer's end."""

    code = "ANSWER_TRUNCATED"


class AnswerEmpty(TurnFailed):
    """The model ended without any text."""

    code = "ANSWER_EMPTY"
    retryable = True


class ModelFaulty(TurnFailed):
    """The model's reply breaks its own wire format or the schema it was given."""

    code = "LLM_FAULTY"
    retryable = True


class RunTimedOut(TurnFailed):
    """The run reached its time limit."""

    code = "RUN_TIMED_OUT"
    retryable = True


class RunLost(TurnFailed):
    """The process that ran it died; another one ended the run."""

    code = "RUN_LOST"
    retryable = True


class SourceRejected(IbidError):
    """A source that can't be indexed; the message says which and why."""

    code = "SOURCE_REJECTED"


class CheckpointFailed(IbidError):
    """A saver refuses to read or write; `thread_id` and, where there is one, `checkpoint_id`."""

    code = "CHECKPOINT_FAILED"

    def __init__(self, message: str, *, thread_id: str, checkpoint_id: str | None = None) -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id


class CheckpointTooLarge(CheckpointFailed):
    """More than the store takes; the message says which setting would help, if one would."""

    code = "CHECKPOINT_TOO_LARGE"


class CheckpointCorrupt(CheckpointFailed):
    """What is stored is incomplete, altered, or of an unknown type; it is never served."""

    code = "CHECKPOINT_CORRUPT"


class CheckpointStale(CheckpointFailed):
    """The writer's fence token is not the thread's current one; nothing of it was kept."""

    code = "CHECKPOINT_STALE"


class ThreadGone(CheckpointFailed):
    """The thread was deleted or has expired while its writer still held a token."""

    code = "THREAD_GONE"


class ThreadLeased(CheckpointFailed):
    """Another writer's lease on the thread is alive, or not yet known to be dead.

    `token` and `beat` are what its record showed. Who asks again later and sees the same two has
    watched it not move, and may take it over once that went on for a full term of its own clock.
    """

    code = "THREAD_LEASED"
    retryable = True

    def __init__(self, message: str, *, thread_id: str, token: int = 0, beat: int = 0) -> None:
        super().__init__(message, thread_id=thread_id)
        self.token = token
        self.beat = beat


class LeaseLost(IbidError):
    """Another writer owns the run, the job or the thread now, or it has ended."""

    code = "LEASE_LOST"


class ObjectMissing(IbidError):
    """The object store has nothing under this key."""

    code = "OBJECT_MISSING"


class ObjectExists(IbidError):
    """The object store has something under this key already, and was not to replace it."""

    code = "OBJECT_EXISTS"


class Misconfigured(IbidError):
    """A setting is missing, absurd, or at odds with what is on disk."""

    code = "MISCONFIGURED"


class SchemaTooNew(Misconfigured):
    """A file was written by a newer version than this one."""

    code = "SCHEMA_TOO_NEW"
