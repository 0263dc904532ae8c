"""How a run starts: begun, admitted or resumed, each a part of one transaction."""

import sqlite3
from dataclasses import replace

from ibid.adapters.sqlite import keys, messages, run_rows
from ibid.adapters.sqlite.conversations import find as find_conversation
from ibid.domain.conversations import Message, Run, RunState
from ibid.domain.errors import (
    LeaseLost,
    NothingPending,
    PauseExpired,
    PausePending,
    PauseResolved,
    RunNumberTaken,
    ThreadBusy,
)
from ibid.domain.events import Paused
from ibid.domain.principals import Principal
from ibid.ports.runs import Begun, PlaceLimits

_LIVE_BEFORE = """
    SELECT id FROM runs
    WHERE tenant = ? AND conversation_id = ? AND number < ? AND ended_at IS NULL
    ORDER BY number LIMIT 1
"""
_RUNNING = """
    SELECT id FROM runs WHERE tenant = ? AND conversation_id = ? AND state = 'running'
"""
_PENDING = """
    SELECT * FROM runs
    WHERE tenant = ? AND conversation_id = ? AND state = 'paused' AND resumed_by IS NULL
"""
_PLACES = """
    SELECT count(*) AS tenants, coalesce(sum(subject = ?), 0) AS subjects
    FROM runs WHERE tenant = ? AND state = 'running'
"""
_MAY_BE_RESUMED_AGAIN = {RunState.FAILED, RunState.CANCELLED, RunState.TIMED_OUT}


def begin(
    connection: sqlite3.Connection,
    run: Run,
    *,
    question: Message,
    title: str,
    limits: PlaceLimits | None,
    behind: bool,
    history: int,
    idempotency: str | None,
) -> Begun:
    """Do as RunStore.begin says."""
    _check_number(connection, run)
    busy = _live_before(connection, run)
    if busy is not None and not behind:
        msg = f"run {busy!r} is under way on conversation {run.conversation_id!r}"
        raise ThreadBusy(msg, run_id=busy)
    _check_pause(connection, run)
    connection.execute(
        "UPDATE conversations SET title = ? WHERE tenant = ? AND id = ? AND title IS NULL",
        (title, run.tenant, run.conversation_id),
    )
    may_run = busy is None and limits is not None and _has_place(connection, run, limits)
    return _keep(connection, run, question, history, idempotency=idempotency, may_run=may_run)


def admit(connection: sqlite3.Connection, run: Run, limits: PlaceLimits) -> bool:
    """Do as RunStore.admit says."""
    kept = run_rows.find_owned(connection, run, beat=None)
    if kept.state is RunState.RUNNING:
        return True
    if _live_before(connection, kept) is not None or _is_running(connection, kept):
        return False
    _check_pause(connection, kept)
    if not _has_place(connection, kept, limits):
        return False
    connection.execute(
        "UPDATE runs SET state = 'running' WHERE tenant = ? AND id = ?", (kept.tenant, kept.id)
    )
    return True


def adopt(connection: sqlite3.Connection, run: Run, *, beat: int, owner: str) -> Run:
    """Do as RunStore.adopt says."""
    kept = run_rows.find_owned(connection, run, beat=None)
    if kept.beat != beat or kept.state is not RunState.QUEUED:
        raise LeaseLost(f"run {run.id!r} has another counter, or runs")
    adopted = replace(kept, lease_owner=owner, beat=beat + 1)
    connection.execute(
        "UPDATE runs SET lease_owner = ?, beat = ? WHERE tenant = ? AND id = ?",
        (adopted.lease_owner, adopted.beat, adopted.tenant, adopted.id),
    )
    return adopted


def resume(
    connection: sqlite3.Connection,
    run: Run,
    *,
    paused: str,
    decision: str,
    question: Message,
    limits: PlaceLimits,
    history: int,
    idempotency: str | None,
) -> Begun:
    """Do as RunStore.resume says."""
    asked = run_rows.find_mine(
        connection, paused, Principal(tenant=run.tenant, subject=run.subject)
    )
    if asked.state is RunState.EXPIRED:
        raise PauseExpired(f"the pause of run {paused!r} has expired")
    if asked.state is not RunState.PAUSED:
        raise NothingPending(f"run {paused!r} waits for no answer")
    if asked.resumed_by is not None:
        _check_retry(connection, asked, asked.resumed_by, decision)
    _check_number(connection, run)
    connection.execute(
        "UPDATE runs SET resumed_by = ?, decision = ? WHERE tenant = ? AND id = ?",
        (run.id, decision, asked.tenant, asked.id),
    )
    may_run = not _is_running(connection, run) and _has_place(connection, run, limits)
    return _keep(connection, run, question, history, idempotency=idempotency, may_run=may_run)


def _check_retry(
    connection: sqlite3.Connection, asked: Run, resumed_by: str, decision: str
) -> None:
    """Let the same decision be carried out again where it came to nothing."""
    before = run_rows.find(connection, asked.tenant, resumed_by)
    state = RunState.FAILED if before is None else before.state
    may_retry = (
        before is not None
        and state in _MAY_BE_RESUMED_AGAIN
        and before.number == _newest(connection, asked)
        and asked.decision == decision
    )
    if not may_retry:
        msg = f"run {asked.id!r} was answered: {resumed_by!r} goes on"
        raise PauseResolved(msg, run_id=resumed_by, state=state)


def _newest(connection: sqlite3.Connection, run: Run) -> int:
    principal = Principal(tenant=run.tenant, subject=run.subject)
    return find_conversation(connection, run.conversation_id, principal).runs_begun


def _check_number(connection: sqlite3.Connection, run: Run) -> None:
    newest = _newest(connection, run)
    if run.number != newest + 1:
        msg = f"the newest run of conversation {run.conversation_id!r} is number {newest}"
        raise RunNumberTaken(msg)


def _check_pause(connection: sqlite3.Connection, run: Run) -> None:
    row = connection.execute(_PENDING, (run.tenant, run.conversation_id)).fetchone()
    if row is None:
        return
    paused = run_rows.read(row)
    interrupt = paused.terminator.interrupt_id if isinstance(paused.terminator, Paused) else ""
    msg = f"run {paused.id!r} waits for an answer"
    raise PausePending(msg, run_id=paused.id, interrupt_id=interrupt)


def _live_before(connection: sqlite3.Connection, run: Run) -> str | None:
    place = (run.tenant, run.conversation_id, run.number)
    row = connection.execute(_LIVE_BEFORE, place).fetchone()
    return None if row is None else row["id"]


def _is_running(connection: sqlite3.Connection, run: Run) -> bool:
    row = connection.execute(_RUNNING, (run.tenant, run.conversation_id)).fetchone()
    return row is not None


def _has_place(connection: sqlite3.Connection, run: Run, limits: PlaceLimits) -> bool:
    row = connection.execute(_PLACES, (run.subject, run.tenant)).fetchone()
    return bool(row["tenants"] < limits.tenant and row["subjects"] < limits.subject)


def _keep(
    connection: sqlite3.Connection,
    run: Run,
    question: Message,
    history: int,
    *,
    idempotency: str | None,
    may_run: bool,
) -> Begun:
    kept = replace(run, state=RunState.RUNNING if may_run else RunState.QUEUED)
    run_rows.insert(connection, kept)
    connection.execute(
        "UPDATE conversations SET runs_begun = ? WHERE tenant = ? AND id = ?",
        (run.number, run.tenant, run.conversation_id),
    )
    before = messages.latest(connection, run.tenant, run.conversation_id, limit=history)
    messages.append(connection, question, tenant=run.tenant)
    keys.bind(connection, idempotency, run.tenant, run.conversation_id)
    return Begun(run=kept, messages=before)
