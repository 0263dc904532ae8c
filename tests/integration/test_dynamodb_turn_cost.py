"""A plain turn costs no more of the app table than it may."""

from dataclasses import replace

import pytest

from ibid.domain.events import CitationsFound, Phase, RunEvent, StatusChanged, TokenDelta
from tests.bench.turn_cost import MOST_READ, MOST_WRITTEN, QUESTION, citations, tokens
from tests.contract.run_steps import append, end, numbered
from tests.fakes.app_table import AppTable
from tests.fakes.aws_faults import intercepted
from tests.fakes.capacity import Bill
from tests.fakes.samples import (
    ANN,
    PLACES,
    a_conversation,
    a_done,
    a_project,
    a_question,
    a_run,
    an_answer,
)

pytestmark = pytest.mark.ministack

FLUSHES = [1, 4, 5, 105, 205, 305, 405]  # entries kept by each write, of 505 shown
HISTORY = 6
CONVERSATION = "c" * 32


async def _turn(table: AppTable, number: int, bill: Bill) -> None:
    """A turn as the engine writes it: a write at the phases, then each 0.8 s of 125 tokens a s."""
    records, said, found = table.records, "".join(tokens(number)), citations()
    events: list[RunEvent] = [
        StatusChanged(phase=Phase.CLASSIFYING),
        StatusChanged(phase=Phase.RETRIEVING),
        CitationsFound(citations=found),
        StatusChanged(phase=Phase.GRADING),
        StatusChanged(phase=Phase.GENERATING),
        *(TokenDelta(text=token) for token in tokens(number)),
    ]
    entries, kept = numbered(events), 0
    run = a_run(number, conversation_id=CONVERSATION)
    run = replace(run, message_id="m" * 32, lease_owner="o" * 45, project_id="p" * 32)
    with intercepted(bill.hook):
        await records.conversations.get(CONVERSATION, principal=ANN)
        await records.runs.begin(
            run, question=a_question(run, QUESTION), title=QUESTION, limits=PLACES, history=25
        )
        for beat, through in enumerate(FLUSHES):
            await append(records, run, beat, entries[kept:through])
            kept = through
            if beat < 3:
                await records.runs.is_cancelled(run, beat=beat + 1)
        cited = tuple(replace(one, cited=one.index < 4) for one in found)
        await end(
            records,
            run,
            replace(a_done(run), citations=cited),
            beat=len(FLUSHES),
            entries=entries[kept:],
            answer=replace(an_answer(run, said), citations=cited),
        )


async def test_a_plain_turn_of_500_tokens_stays_within_its_units(ministack_url: str) -> None:
    async with AppTable.opened(ministack_url) as table:
        await table.records.projects.create(a_project("p" * 32))
        conversation = a_conversation(CONVERSATION, project_id="p" * 32)
        await table.records.conversations.create(conversation)

        for number in range(1, HISTORY + 2):
            bill = Bill()
            await _turn(table, number, bill)

            assert sum(bill.written.values()) <= MOST_WRITTEN, bill.lines()
            assert sum(bill.read.values()) <= MOST_READ, bill.lines()
