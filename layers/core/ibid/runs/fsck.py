"""A check of all that the stores hold: it reads, names what is wrong, and changes nothing.

It may run beside a server: what one conversation shows is of one moment, and what seems to be left
over is looked at again in the end.
"""

from collections.abc import Sequence

from ibid.ports.inventory import CheckpointInventory, Inventory
from ibid.runs.conversation_checks import check_conversation
from ibid.runs.findings import Finding, FindingKind


async def check(
    inventory: Inventory, *, checkpoints: CheckpointInventory | None = None
) -> Sequence[Finding]:
    """Return every invariant that the stores show to be broken; none if they are healthy.

    Args:
        inventory: The app records of every tenant.
        checkpoints: Where the threads of turns are; None leaves them unchecked.

    Raises:
        StoreUnavailable: A store gave no answer.
    """
    findings = [_fault(place) for place in await inventory.faults()]
    keys = await _keys_of_runs(inventory)
    threads = await _threads(checkpoints)
    runs: set[tuple[str, str]] = set()
    turns: set[str] = set()
    async for kept in inventory.conversations():
        findings.extend(check_conversation(kept))
        runs.update((kept.tenant, one.run.id) for one in kept.runs)
        turns.update(one.run.turn_id for one in kept.runs)
    left_keys = [key for key, of in keys.items() if of not in runs]
    if left_keys:
        still = await _keys_of_runs(inventory)
        findings.extend(
            Finding(kind=FindingKind.KEY_LEFT, ids={"tenant": tenant, "key": record_id})
            for tenant, record_id in left_keys
            if (tenant, record_id) in still
        )
    if checkpoints is not None:
        findings.extend(_fault(place) for place in await checkpoints.faults())
        left = threads - turns
        if left:
            left &= await _threads(checkpoints)
        findings.extend(
            Finding(kind=FindingKind.CHECKPOINT_LEFT, ids={"thread": thread})
            for thread in sorted(left)
        )
    return findings


def _fault(place: str) -> Finding:
    return Finding(kind=FindingKind.STORE_FAULT, ids={"place": place})


async def _keys_of_runs(inventory: Inventory) -> dict[tuple[str, str], tuple[str, str]]:
    """Return tenant and run of each loose record whose answer is a run's."""
    return {
        (loose.tenant, loose.record.id): (loose.tenant, loose.record.answer.run_id)
        async for loose in inventory.loose_keys()
        if loose.record.answer is not None and loose.record.answer.run_id is not None
    }


async def _threads(checkpoints: CheckpointInventory | None) -> set[str]:
    return set() if checkpoints is None else {thread async for thread in checkpoints.threads()}
