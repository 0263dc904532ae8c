"""Run rows; a run is live until it has an `ended_at`."""

import sqlite3

from ibid.adapters.records import codec
from ibid.domain.conversations import Run, RunState
from ibid.domain.errors import LeaseLost, RunNotFound
from ibid.domain.events import Paused
from ibid.domain.principals import Principal


def find(connection: sqlite3.Connection, tenant: str, run_id: str) -> Run | None:
    """Return a run of any subject, or None."""
    row = connection.execute(
        "SELECT * FROM runs WHERE tenant = ? AND id = ?", (tenant, run_id)
    ).fetchone()
    return None if row is None else read(row)


def find_mine(connection: sqlite3.Connection, run_id: str, principal: Principal) -> Run:
    """Return the principal's run of this id.

    Raises:
        RunNotFound: There is none.
    """
    run = find(connection, principal.tenant, run_id)
    if run is None or run.subject != principal.subject:
        raise RunNotFound(f"no run {run_id!r}")
    return run


def find_owned(connection: sqlite3.Connection, run: Run, *, beat: int | None) -> Run:
    """Return a live run as it is kept, to its owner.

    Args:
        connection: In a transaction.
        run: As its owner knows it.
        beat: The counter that its owner knows, or the one before it: then the answer to the last
            write was lost on its way. None leaves it unchecked.

    Raises:
        LeaseLost: It has ended, has another owner or counter, or is gone.
    """
    kept = find(connection, run.tenant, run.id)
    if (
        kept is None
        or kept.ended_at is not None
        or kept.lease_owner != run.lease_owner
        or (beat is not None and kept.beat not in {beat, beat + 1})
    ):
        raise LeaseLost(f"run {run.id!r} has ended, or has another owner")
    return kept


def insert(connection: sqlite3.Connection, run: Run) -> None:
    """Keep a new run."""
    connection.execute(
        """
        INSERT INTO runs (
            tenant, id, subject, conversation_id, project_id, message_id, state, lease_owner,
            beat, created_at, last_event_id, number, graph, turn_id, resumes
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)
        """,
        (
            run.tenant,
            run.id,
            run.subject,
            run.conversation_id,
            run.project_id,
            run.message_id,
            run.state,
            run.lease_owner,
            run.beat,
            codec.moment_to_int(run.created_at),
            run.number,
            run.graph,
            run.turn_id,
            run.resumes,
        ),
    )


def update_end(connection: sqlite3.Connection, run: Run) -> None:
    """Keep how a run ended."""
    pause = run.terminator if isinstance(run.terminator, Paused) else None
    connection.execute(
        """
        UPDATE runs SET
            state = ?, terminator = ?, last_event_id = ?, ended_at = ?, pause_expires_at = ?
        WHERE tenant = ? AND id = ?
        """,
        (
            run.state,
            codec.terminator_to_json(run.terminator),
            run.last_event_id,
            None if run.ended_at is None else codec.moment_to_int(run.ended_at),
            None if pause is None else codec.moment_to_int(pause.expires_at),
            run.tenant,
            run.id,
        ),
    )


def read(row: sqlite3.Row) -> Run:
    """Make the run of a row."""
    return Run(
        tenant=row["tenant"],
        subject=row["subject"],
        id=row["id"],
        conversation_id=row["conversation_id"],
        project_id=row["project_id"],
        message_id=row["message_id"],
        state=RunState(row["state"]),
        lease_owner=row["lease_owner"],
        beat=row["beat"],
        created_at=codec.moment_from_int(row["created_at"]),
        number=row["number"],
        graph=row["graph"],
        turn_id=row["turn_id"],
        cancel_requested=bool(row["cancel_requested"]),
        ended_at=codec.optional_moment(row["ended_at"]),
        last_event_id=row["last_event_id"],
        terminator=codec.terminator_from_json(row["terminator"]),
        resumes=row["resumes"],
        resumed_by=row["resumed_by"],
        decision=row["decision"],
    )
