"""A healthy store that holds one of everything, for the checks of damage."""

from dataclasses import replace

from ibid.domain.conversations import Message, Run
from ibid.domain.events import RESERVED_IDS, Done, Failed, Terminator
from ibid.ports.feedback import Feedback
from ibid.ports.idempotency import KeyScope, StoredAnswer
from ibid.runs.states import finish_reason
from tests.contract.run_steps import (
    WEEK,
    a_failure,
    append,
    begin,
    conversations,
    end,
    numbered,
    resume,
    some_events,
)
from tests.fakes.records import Records
from tests.fakes.samples import NOON, a_done, a_pause, a_resumption, a_run, an_answer

PLANTED = "PLANTED-4d1c"
TEXT = f"a {PLANTED} b"


def answer_of(run: Run, terminator: Terminator, text: str = TEXT) -> Message:
    """The message that goes with a terminator."""
    message = replace(an_answer(run, text), finish_reason=finish_reason(terminator))
    if isinstance(terminator, Done):
        return replace(
            message,
            citations=terminator.citations,
            cited_indexes=terminator.cited_indexes,
            grounding_warnings=terminator.grounding_warnings,
        )
    code = terminator.code if isinstance(terminator, Failed) else None
    return replace(message, error_code=code)


async def _end(records: Records, run: Run, terminator: Terminator) -> Run:
    """Write a begun run's journal in two batches, and end it."""
    entries = numbered(some_events("a ", PLANTED, " b"))
    await append(records, run, 0, entries[:2])
    return await end(
        records,
        run,
        terminator,
        beat=1,
        entries=entries[2:],
        event_id=6,
        answer=answer_of(run, terminator),
    )


async def _turn(records: Records, run: Run, terminator: Terminator | None = None) -> Run:
    await begin(records, run)
    return await _end(records, run, terminator or a_done(run))


async def _die(records: Records, run: Run) -> None:
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("a ", PLANTED, " b")))
    seen = await records.runs.read_dead(run.id, tenant=run.tenant)
    assert seen is not None
    lost = a_failure(kept_through_id=5, message_id=run.message_id)
    await records.runs.end_dead(
        seen,
        terminator=lost,
        event_id=5 + RESERVED_IDS + 1,
        answer=answer_of(run, lost),
        at=NOON,
        expires_at=WEEK,
    )


async def _rate(records: Records, run: Run) -> None:
    await records.feedback.put(
        Feedback(
            tenant=run.tenant,
            subject=run.subject,
            conversation_id=run.conversation_id,
            run_id=run.id,
            rating="up",
            comment=PLANTED,
            created_at=NOON,
        )
    )


async def _claim(records: Records, key: str) -> str:
    scope = KeyScope(tenant="acme", subject="ann", method="POST", path="/ask", key=key)
    record = await records.idempotency.claim(
        scope, fingerprint="f", owner="me", now=NOON, expires_at=WEEK
    )
    return record.id


async def _finish(records: Records, key: str, run_id: str | None) -> None:
    await records.idempotency.finish(
        key, tenant="acme", owner="me", answer=StoredAnswer(status=200, run_id=run_id)
    )


async def fill(records: Records) -> None:
    """Make one of everything that a healthy store can hold."""
    names = ("gone", "c1", "c2", "c3", "c4")
    await conversations(records, *names)
    await _turn(records, a_run(conversation_id="gone"))
    await records.runs.purge(WEEK)  # before there is another journal

    bound, loose = await _claim(records, "bound"), await _claim(records, "loose")
    await _claim(records, "open")
    await begin(records, a_run(1), idempotency=bound)
    first = await _end(records, a_run(1), a_done(a_run(1)))
    await _finish(records, bound, first.id)
    await _finish(records, loose, first.id)
    await _rate(records, first)
    paused = await _turn(records, a_run(2), a_pause(a_run(2)))
    await resume(records, a_resumption(paused, 3))
    await _end(records, a_resumption(paused, 3), a_failure())
    await resume(records, a_resumption(paused, 4))
    await _end(records, a_resumption(paused, 4), a_done(a_run(4)))
    await _die(records, a_run(5))
    await begin(records, a_run(6))
    await append(records, a_run(6), 0, numbered(some_events("a")))
    await begin(records, a_run(7), behind=True)
    await _turn(records, a_run(conversation_id="c2"), a_pause(a_run(conversation_id="c2")))
    expired = a_run(conversation_id="c3")
    await records.runs.expire(await _turn(records, expired, a_pause(expired)))
