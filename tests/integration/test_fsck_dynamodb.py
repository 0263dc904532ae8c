"""The checker finds damage in the app table, and none in a healthy one."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import boto3
import pytest

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.inventory import DynamoCheckpointInventory
from ibid.adapters.dynamodb.records.inventory import DynamoInventory
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.tables import create_tables
from ibid.domain.principals import Principal
from ibid.runs.findings import Finding, FindingKind
from ibid.runs.fsck import check
from tests.contract.run_steps import begin, conversations, end_dead
from tests.fakes.app_table import AppTable
from tests.fakes.ministack import client_config
from tests.fakes.samples import ANN, a_run
from tests.integration.fsck_store import PLANTED, fill

pytestmark = pytest.mark.ministack

Client = Any  # boto3 makes its classes at run time
K = FindingKind
C1 = "T#acme#C#c1"


class Checked:
    """A filled table that can be damaged and checked."""

    def __init__(self, table: AppTable) -> None:
        self.table = table
        self.client: Client = boto3.session.Session().client("dynamodb", **client_config(table.url))
        self.checkpoints = f"{table.name}-checkpoints"
        self._connection = Connection(
            {"dynamodb": client_config(table.url)}, workers=2, budget=RetryBudget(seconds=5.0)
        )

    async def fill(self) -> None:
        create_tables(self.client, checkpoints=self.checkpoints, writes=f"{self.table.name}-writes")
        await fill(self.table.records)
        for turn in ("c1-2", "c2-1", "c3-1"):
            self.add_thread(turn)

    def add_thread(self, turn: str) -> None:
        item = {"thread_id": {"S": turn}, "checkpoint_id": {"S": "1"}}
        self.client.put_item(TableName=self.checkpoints, Item=item)

    async def check(self) -> Sequence[Finding]:
        return await check(
            DynamoInventory(self._connection, table=self.table.name, now=lambda: self.table.now),
            checkpoints=DynamoCheckpointInventory(
                self._connection, table=self.checkpoints, now=lambda: self.table.now
            ),
        )

    def remove(self, partition: str, range_key: str) -> None:
        self.client.delete_item(
            TableName=self.table.name, Key={"pk": {"S": partition}, "sk": {"S": range_key}}
        )

    def put(self, partition: str, range_key: str, **values: dict[str, Any]) -> None:
        """Change attributes of an item, or make one."""
        self.client.update_item(
            TableName=self.table.name,
            Key={"pk": {"S": partition}, "sk": {"S": range_key}},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
        )

    def run_row(self, number: int) -> tuple[str, str]:
        return C1, f"R#{number:016d}"

    def slots(self, number: int) -> list[tuple[str, str]]:
        """The keys of a run's batches, oldest first."""
        found = [
            (item["pk"]["S"], item["sk"]["S"])
            for item in self.table.items()
            if item["pk"]["S"] == f"{C1}#J#{number:016d}" and "last" in item
        ]
        return sorted(found)

    def close(self) -> None:
        self._connection.close()
        self.client.close()


@pytest.fixture
async def checked(ministack_url: str) -> AsyncIterator[Checked]:
    async with AppTable.opened(ministack_url) as table:
        checked = Checked(table)
        await checked.fill()
        yield checked
        checked.close()


async def test_a_healthy_table_has_no_finding(checked: Checked) -> None:
    assert await checked.check() == []


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


Plant = Callable[[Checked], object]
DAMAGE: list[dict[FindingKind, Plant]] = [
    {
        K.RUN_NUMBERS: lambda it: it.put(C1, "~", runs=_number(9)),
        K.TERMINATOR_ID: lambda it: it.put(*it.run_row(1), last=_number(9)),
        K.JOURNAL_UNREADABLE: lambda it: it.put(*it.slots(5)[0], body={"B": b"\x01no"}),
        K.RESUMPTION: lambda it: it.put(*it.run_row(2), resumed={"S": "c1-1"}),
        K.CHECKPOINT_LEFT: lambda it: it.add_thread("c9-1"),
        K.STORE_FAULT: lambda it: it.put("LIVE", "T#acme", queued={"SS": ["012345678901#c1-1"]}),
        K.PROJECT_MISSING: lambda it: it.remove("T#acme#P#p1", "A"),
    },
    {
        K.RUN_NUMBERS: lambda it: it.remove(*it.run_row(5)),
        K.JOURNAL_LEFT: lambda _: None,  # that of the run which is gone
        K.TERMINATOR_STATE: lambda it: it.put(*it.run_row(1), state={"S": "cancelled"}),
        K.TURN: lambda it: it.put(*it.run_row(4), turn={"S": "c1-1"}),
        K.RUN_OWNER: lambda it: it.put(*it.run_row(3), subject={"S": "bob"}),
    },
    {
        K.CONVERSATION_MISSING: lambda it: it.remove(C1, "~"),
        K.FEEDBACK_LEFT: lambda it: it.remove(*it.run_row(1)),
        K.KEY_LEFT: lambda _: None,  # that of the run which is gone
    },
    {
        K.JOURNAL_GAP: lambda it: it.remove(*it.slots(1)[0]),
        K.TERMINATOR_ID: lambda it: it.remove(*it.slots(5)[0]),
        K.ROW_UNREADABLE: lambda it: it.put(*it.run_row(4), state={"S": "dreaming"}),
    },
    {K.ROW_UNREADABLE: lambda it: it.put(*it.run_row(1), body={"B": b"\x01nonsense"})},
]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_found_and_named_without_content(
    checked: Checked, damage: dict[FindingKind, Plant]
) -> None:
    for plant in damage.values():
        plant(checked)

    findings = await checked.check()

    assert set(damage) <= {finding.kind for finding in findings}
    assert PLANTED not in repr(findings)


async def test_what_was_deleted_leaves_only_what_no_conversation_owns(checked: Checked) -> None:
    for conversation_id in ("gone", "c1", "c2", "c3", "c4"):
        await checked.table.records.conversations.delete(conversation_id, principal=ANN)

    kinds = {finding.kind for finding in await checked.check()}

    assert kinds == {K.CHECKPOINT_LEFT, K.KEY_LEFT}


async def test_a_number_whose_run_never_began_is_no_gap(checked: Checked) -> None:
    row = checked.run_row(7)
    checked.remove(*row)  # as if its process had died between its two writes
    seen = await checked.table.records.runs.read_dead("c1-7", tenant="acme")
    assert seen is not None

    checked.put(*row, void={"BOOL": True})
    await checked.table.records.runs.read_dead("c1-7", tenant="acme")

    assert await checked.check() == []


async def test_a_number_that_nobody_took_is_no_gap(checked: Checked) -> None:
    runs = checked.table.records.runs
    conversation = await checked.table.records.conversations.get("c1", principal=ANN)
    name = f"c1-{conversation.runs_begun + 1}"
    # as if its process had died between its place and its number
    checked.put("LIVE", "T#acme", queued={"SS": [f"012345678901#{name}"]})
    dead = await runs.read_dead(name, tenant="acme")
    assert dead is not None

    assert await end_dead(checked.table.records, dead)

    assert ("acme", name) not in await runs.live()
    assert await checked.check() == []


async def test_a_journal_whose_time_is_over_counts_as_removed(checked: Checked) -> None:
    checked.table.now += 30 * 24 * 3600.0

    findings = await checked.check()

    assert [finding for finding in findings if finding.kind.startswith("journal")] == []


async def test_runs_of_other_tenants_with_odd_names_are_walked_too(checked: Checked) -> None:
    odd = Principal(tenant="a#b%23/c", subject="é#%")
    await conversations(checked.table.records, "x#1", principal=odd)
    run = a_run(conversation_id="x#1", principal=odd)
    await begin(checked.table.records, run)

    assert await checked.check() == []
    checked.put("T#a%23b%2523/c#C#x%231", "~", runs=_number(2))

    (finding,) = await checked.check()
    assert finding.ids == {"tenant": odd.tenant, "conversation": "x#1"}
