"""Runs as items: the run, its question, and once it has ended its answer and terminator.

A row that is `void` takes a number whose run was never begun; a row that is `gone` keeps a slow
writer out of a conversation that was deleted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ibid.adapters.dynamodb.records import blobs, keys
from ibid.adapters.dynamodb.records.blobs import Blob
from ibid.adapters.dynamodb.records.table import Table
from ibid.adapters.dynamodb.records.wire import Item, Value
from ibid.adapters.records import codec
from ibid.domain.conversations import Message, Run, RunState, run_id
from ibid.domain.events import Terminator

LIVE = (
    "attribute_exists(#pk) AND attribute_not_exists(#ended)"
    " AND attribute_not_exists(#void) AND attribute_not_exists(#gone)"
)
OWNED = LIVE + " AND #owner = :owner"


def number_of(item: Item) -> int:
    """Return the number of a run's row."""
    return int(item["sk"].removeprefix(keys.RUNS))


def is_run(item: Item | None) -> bool:
    """Whether there is a run behind a row."""
    return item is not None and "void" not in item and "gone" not in item


def is_live(item: Item) -> bool:
    """Whether a run's row has no end yet."""
    return "ended" not in item


def is_pending(item: Item) -> bool:
    """Whether a run's row waits for an answer."""
    return item["state"] == RunState.PAUSED and "resumed" not in item


def attributes_of(
    run: Run, question: Message, *, clear: bool, idempotency: str | None
) -> dict[str, Value | None]:
    """Return the row of a new run.

    Args:
        run: As it is to be kept.
        question: The asker's message.
        clear: No earlier run of the thread was live or paused: who looks for such need not look
            further back.
        idempotency: The id of the idempotency record that it answers.
    """
    return {
        "subject": run.subject,
        "project": run.project_id,
        "message": run.message_id,
        "state": run.state,
        "owner": run.lease_owner,
        "created": codec.moment_to_int(run.created_at),
        "graph": run.graph,
        "turn": run.turn_id,
        "resumes": run.resumes,
        "asked": blobs.squeeze(
            _dump([question.id, question.content, codec.moment_to_int(question.created_at)])
        ),
        "clear": True if clear else None,
        "key": idempotency,
    }


def ending_of(answer: Message, terminator: Terminator) -> Blob:
    """Return what a run's row gets with its end."""
    message = [answer.id, answer.content, codec.moment_to_int(answer.created_at)]
    lines = [
        _dump(message),
        codec.outcome_to_json(answer),
        codec.terminator_to_json(terminator) or "",
    ]
    return blobs.blob(blobs.squeeze("\n".join(lines)))


class RunRows:
    """Reads runs and messages from rows.

    Args:
        table: Where the parts of large answers are.
        tenant: Whose.
        conversation_id: Which thread's.
    """

    def __init__(self, table: Table, tenant: str, conversation_id: str) -> None:
        self._table = table
        self._tenant = tenant
        self._conversation_id = conversation_id

    def run(self, item: Item, *, beat: int = 0, last_event_id: int = 0) -> Run:
        """Make the run of a row; what is given stands for a live one only."""
        number = number_of(item)
        run = Run(
            tenant=self._tenant,
            subject=item["subject"],
            id=run_id(self._conversation_id, number),
            conversation_id=self._conversation_id,
            project_id=item["project"],
            message_id=item["message"],
            state=RunState(item["state"]),
            lease_owner=item["owner"],
            beat=beat,
            created_at=codec.moment_from_int(item["created"]),
            number=number,
            graph=item["graph"],
            turn_id=item["turn"],
            cancel_requested="cancel" in item,
            last_event_id=last_event_id,
            resumes=item.get("resumes"),
            resumed_by=item.get("resumed"),
            decision=item.get("decision"),
        )
        if is_live(item):
            return run
        *_, terminator = self._ending(item)
        return replace(
            run,
            beat=item["beat"],
            ended_at=codec.moment_from_int(item["ended"]),
            last_event_id=item["last"],
            terminator=codec.terminator_from_json(terminator),
        )

    def messages(self, item: Item) -> Sequence[Message]:
        """Make the messages of a row: the question and, once there is one, the answer."""
        if not is_run(item):
            return ()
        name = run_id(self._conversation_id, number_of(item))
        asked = self._message(json.loads(blobs.expand(item["asked"])), name, role="user")
        if is_live(item):
            return (asked,)
        message, outcome, _ = self._ending(item)
        answer = self._message(json.loads(message), name, role="assistant")
        return asked, replace(answer, **codec.outcome_from_json(outcome))

    def _message(self, parts: Sequence[Any], name: str, **role: Any) -> Message:  # noqa: ANN401 - a literal
        return Message(
            id=parts[0],
            conversation_id=self._conversation_id,
            run_id=name,
            content=parts[1],
            created_at=codec.moment_from_int(parts[2]),
            **role,
        )

    def _ending(self, item: Mapping[str, Any]) -> Sequence[str]:
        partition = keys.journal(self._tenant, self._conversation_id, number_of(item))
        return blobs.expand(blobs.read(self._table, partition, item)).split("\n")


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
