"""What every RunStore keeps of a run's events, and for how long."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibid.domain.errors import JournalExpired, LeaseLost, RunNotFound
from ibid.domain.events import CitationsFound, Entry, TokenDelta
from ibid.domain.principals import Principal
from tests.contract.run_steps import (
    WEEK,
    a_failure,
    append,
    begin,
    conversations,
    end,
    end_dead,
    ended,
    journal,
    kept,
    messages,
    numbered,
    some_events,
)
from tests.fakes.records import Records
from tests.fakes.samples import ANN, a_citation, a_done, a_run

INSTANT = timedelta(microseconds=1)

# DynamoDB removes by itself what has expired.
purging = pytest.mark.parametrize("records", ["fake", "embedded"], indirect=True)


def _terminator(entry_id: int) -> Entry:
    return Entry(id=entry_id, event=a_done(a_run()))


async def test_what_was_appended_is_read_while_the_run_lives(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("a", "b", "c"))
    empty = await records.runs.entries(run, after=0)

    told = await append(records, run, 0, entries[:3])
    first = await records.runs.entries(run, after=0)
    await append(records, run, told.beat, entries[3:])

    assert (list(empty.entries), empty.run, empty.has_more) == ([], run, False)
    assert list(first.entries) == entries[:3]
    assert first.run == replace(run, beat=1, last_event_id=3)
    assert await journal(records, run) == entries
    assert await kept(records, run) == replace(run, beat=2, last_event_id=5)


async def test_an_ended_runs_journal_ends_with_its_terminator(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("a", "b"))
    await append(records, run, 0, entries[:2])

    over = await end(records, run, beat=1, entries=entries[2:], event_id=5)

    assert over.last_event_id == 5
    assert await journal(records, run) == [*entries, _terminator(5)]


async def test_every_suffix_is_given_whole_in_pages_of_any_size(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events(*map(str, range(20))))
    beat = 0
    for start, stop in [(0, 1), (1, 2), (2, 9), (9, 21)]:
        beat = (await append(records, run, beat, entries[start:stop])).beat
    await end(records, run, beat=beat, entries=entries[21:], event_id=23)
    whole = [*entries, _terminator(23)]

    for after in range(24):
        for limit in (1, 2, 7, 100):
            assert await journal(records, run, after=after, limit=limit) == whole[after:]


async def test_a_page_holds_about_as_much_as_it_may(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    beat = 0
    for first in range(1, 101, 10):
        tokens = numbered([TokenDelta(text="x")] * 10, first)
        beat = (await append(records, run, beat, tokens)).beat

    part = await records.runs.entries(run, after=5, limit=30)

    assert 30 <= len(part.entries) <= 40
    assert part.has_more
    assert [entry.id for entry in part.entries][:3] == [6, 7, 8]


async def test_an_empty_append_only_moves_the_counter(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    told = [await append(records, run, beat) for beat in range(3)]

    assert [one.beat for one in told] == [1, 2, 3]
    assert await kept(records, run) == replace(run, beat=3)
    assert await journal(records, run) == []


async def test_a_write_whose_answer_was_lost_may_be_tried_again_with_more(
    records: Records,
) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("a", "b", "c"))
    await append(records, run, 0, entries[:2])

    again = await append(records, run, 0, entries[:2])
    more = await append(records, run, 0, entries[:4])
    heartbeat = await append(records, run, 1)
    repeated = await append(records, run, 1)

    assert (again.beat, more.beat, heartbeat.beat, repeated.beat) == (1, 1, 2, 2)
    assert await journal(records, run) == entries[:4]
    await end(records, run, beat=1, entries=entries[2:], event_id=6)
    assert await journal(records, run) == [*entries, _terminator(6)]


async def test_an_older_counter_is_refused_and_nothing_kept(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0)
    await append(records, run, 1)

    with pytest.raises(LeaseLost):
        await append(records, run, 0, numbered([TokenDelta(text="late")]))

    assert await kept(records, run) == replace(run, beat=2)


async def test_entries_that_leave_a_gap_are_not_kept(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered([TokenDelta(text="a")]))

    with pytest.raises(ValueError, match="id"):
        await append(records, run, 1, numbered([TokenDelta(text="c")], 3))
    with pytest.raises(ValueError, match="id"):
        await end(records, run, beat=1, event_id=3)

    assert await kept(records, run) == replace(run, beat=1, last_event_id=1)
    assert len(await messages(records)) == 1


@pytest.mark.parametrize("characters", [1_000, 500_000, 3_000_000])
async def test_an_entry_over_any_limit_is_split_not_lost(records: Records, characters: int) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    dice = random.Random(characters)  # noqa: S311 - text that does not compress away
    text = "".join(chr(dice.randrange(0x21, 0x2FFF)) for _ in range(characters // 3))
    entries = numbered(
        [
            TokenDelta(text="before"),
            TokenDelta(text=text),
            CitationsFound(citations=(replace(a_citation(), file_path=text[:9_000]),) * 8),
            TokenDelta(text="after"),
        ]
    )

    await append(records, run, 0, entries[:1])
    await append(records, run, 1, entries[1:])
    await end(records, run, beat=2, event_id=5)

    assert await journal(records, run) == [*entries, _terminator(5)]
    assert await journal(records, run, after=1, limit=1) == [*entries[1:], _terminator(5)]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches=st.lists(st.lists(st.text(st.characters(codec="utf-8")), max_size=4), max_size=4))
async def test_whatever_text_comes_back(records: Records, batches: Sequence[Sequence[str]]) -> None:
    run = a_run(conversation_id=await _fresh(records))
    await begin(records, run)
    whole: list[Entry] = []
    for beat, batch in enumerate(batches):
        new = numbered([TokenDelta(text=text) for text in batch], len(whole) + 1)
        await append(records, run, beat, new)
        whole.extend(new)

    assert await journal(records, run) == whole


async def _fresh(records: Records) -> str:
    """Make a conversation, since an example starts where the one before it ended."""
    conversation_id = uuid4().hex
    await records.projects.delete("p1", tenant="acme")
    await conversations(records, conversation_id)
    return conversation_id


async def test_a_follower_sees_each_entry_once_while_the_owner_writes(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered([TokenDelta(text=f"{number} ") for number in range(120)])

    async def write() -> None:
        for beat in range(40):
            await append(records, run, beat, entries[3 * beat : 3 * beat + 3])
        await end(records, run, beat=40, event_id=121)

    writing = asyncio.create_task(write())
    seen: list[Entry] = []
    while True:
        part = await records.runs.entries(run, after=seen[-1].id if seen else 0, limit=7)
        seen.extend(part.entries)
        assert part.run.terminator is not None or len(seen) <= part.run.last_event_id
        if part.run.terminator is not None and not part.has_more:
            break
    await writing

    assert seen == [*entries, _terminator(121)]


@purging
async def test_a_journal_is_purged_once_its_time_is_over(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("a")))
    over = await end(records, run, beat=1, event_id=4)
    before = await messages(records)

    early = await records.runs.purge(WEEK - INSTANT)
    assert len(await journal(records, run)) == 4
    due = await records.runs.purge(WEEK)
    again = await records.runs.purge(WEEK)

    assert (early > 0, due > 0, again > 0) == (False, True, False)
    with pytest.raises(JournalExpired):
        await records.runs.entries(run, after=0)
    assert await records.runs.get(run.id, principal=ANN) == over
    assert await messages(records) == before


async def test_the_last_write_says_how_long_a_journal_is_kept(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await records.runs.append(
        run, beat=0, entries=numbered(some_events("a")), expires_at=WEEK - timedelta(days=3)
    )
    await end(records, run, beat=1, event_id=4)

    await records.runs.purge(WEEK - INSTANT)

    assert len(await journal(records, run)) == 4


async def test_a_live_runs_journal_is_not_purged(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    entries = numbered(some_events("a"))
    await append(records, run, 0, entries)

    assert await records.runs.purge(WEEK + timedelta(days=300)) == 0

    assert await journal(records, run) == entries


@purging
async def test_a_journal_of_a_run_that_died_is_purged_too(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("a")))
    await end_dead(records, await kept(records, run))

    assert await records.runs.purge(WEEK) > 0

    with pytest.raises(JournalExpired):
        await records.runs.entries(run, after=0)


@purging
async def test_a_purge_does_no_more_than_it_may_and_goes_on_the_next_time(
    records: Records,
) -> None:
    await conversations(records, "c1")
    for number in range(1, 8):
        run = a_run(number)
        await begin(records, run)
        await append(records, run, 0, numbered([TokenDelta(text="a")]))
        await end(records, run, beat=1, event_id=2)

    counts = []
    while removed := await records.runs.purge(WEEK, limit=3):
        counts.append(removed)

    assert counts == [3, 3, 1]


async def test_a_failed_runs_journal_tells_the_failure(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)

    await end(records, run, a_failure())

    assert await journal(records, run) == [Entry(id=1, event=a_failure())]


async def test_no_entry_of_another_run_is_read(records: Records) -> None:
    await conversations(records, "c1", "c1-1")
    await conversations(records, "c1", principal=Principal(tenant="rival", subject="ann"))
    for number in range(1, 13):  # c1-1, and c1-11 which begins with it
        run = a_run(number)
        await begin(records, run)
        await end(records, run, entries=numbered([TokenDelta(text=str(number))]))
    await ended(records, 1, conversation_id="c1-1")

    for number in range(1, 13):
        first, _ = await journal(records, a_run(number))
        assert first.event == TokenDelta(text=str(number))
    with pytest.raises(RunNotFound):
        await records.runs.entries(replace(a_run(), tenant="rival"), after=0)


async def test_a_write_that_is_tried_changes_nothing(records: Records) -> None:
    await conversations(records, "c1")
    run = a_run()
    await begin(records, run)
    await append(records, run, 0, numbered(some_events("a")))
    before = await kept(records, run), await records.runs.live(), await journal(records, run)

    for tenant, run_id in (("acme", run.id), ("acme", "c1-9"), ("rival", run.id), ("acme", "?")):
        await records.runs.try_write(run_id, tenant=tenant)

    assert before == (
        await kept(records, run),
        await records.runs.live(),
        await journal(records, run),
    )
    assert (await append(records, run, 1)).beat == 2
