"""Two thousand turns on servers that die, and not one promise broken."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from ibid.bootstrap.checking import open_inventories
from ibid.runs.fsck import check
from ibid.settings import Settings, read_settings
from tests.fakes.event_source import Dispatched
from tests.soak.clients import Client
from tests.soak.record import Shown, faults, kept_through
from tests.soak.server import TERM_S
from tests.soak.servers import Servers

PRINCIPALS = ("acme/ann", "acme/bob", "acme/cas", "zeta/ann", "zeta/dov", "zeta/eve")
AT_ONCE = 3  # turns of one client, one more than run at once
KILLED_AFTER = (2, 14)  # turns
EXAMPLE = {
    "limits.py": ("LINKS_PER_HOUR = 20", "How many links one client may make in an hour."),
    "options.py": ("def load(path): ...", "Read the options from a file."),
    "weights.py": ("def load(name): ...", "Fetch the weights of a model by name."),
    "web.py": ("def create_app(options): ...", "Create the web application with its routes."),
}


async def soak(
    data: Path, sources: Path, *, environ: Mapping[str, str], turns: int, seed: int
) -> tuple[list[str], int]:
    """Do so many turns, let everything come to its end; say what was wrong, and the kills."""
    _write_example(sources)
    servers = Servers(data, sources, environ=environ, seed=seed)
    clients = [Client(who, servers, seed=seed + at) for at, who in enumerate(PRINCIPALS)]
    try:
        await servers.start()
        for client in clients:
            await client.set_up(str(sources))
        killing = asyncio.create_task(servers.kill_some(KILLED_AFTER))
        left = iter(range(turns))
        await asyncio.gather(*(_work(client, left) for client in clients for _ in range(AT_ONCE)))
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        await servers.start_again()
        await asyncio.sleep(2 * TERM_S)  # what died last is ended within a term
        problems = [problem for client in clients for problem in client.problems]
        for found in await asyncio.gather(*(_all_faults(client) for client in clients)):
            problems += found
        return problems, servers.kills
    finally:
        for client in clients:
            await client.close()
        await servers.stop()


def _write_example(sources: Path) -> None:
    sources.mkdir()
    for name, (code, comment) in EXAMPLE.items():
        (sources / name).write_text(f"# {comment}\n{code}\n")


async def _work(client: Client, left: Iterator[int]) -> None:
    for _ in left:
        await client.turn()
        client.servers.turn_done()


async def _all_faults(client: Client) -> list[str]:
    return [fault for shown in client.shown for fault in await _faults(client, shown)]


async def _faults(client: Client, shown: Shown) -> list[str]:
    again = Shown(shown.run_id, client.principal)
    if not await client.read_again(again):
        is_deleted = any(shown.run_id.startswith(name) for name in client.deleted)
        return [] if is_deleted else [f"run {shown.run_id} is gone"]
    kept: list[Dispatched] = again.events
    cut = kept_through(json.loads(kept[-1].data)) if kept else None
    return [f"run {shown.run_id}: {fault}" for fault in faults(shown, kept, cut)]


async def _findings(settings: Settings) -> list[str]:
    async with open_inventories(settings) as stores:
        found = await check(stores.records, checkpoints=stores.checkpoints)
    return [f"{finding.kind}: {finding.ids}" for finding in found]


@pytest.mark.slow
@pytest.mark.timeout(1_500)
async def test_no_promise_is_broken_by_2000_turns_on_servers_that_die(tmp_path: Path) -> None:
    data = tmp_path / "data"

    problems, kills = await soak(data, tmp_path / "sources", environ={}, turns=2_000, seed=7)

    assert kills > 100
    assert problems == []
    assert await _findings(read_settings({}, data=data)) == []


@pytest.mark.slow
@pytest.mark.ministack
@pytest.mark.timeout(1_500)
async def test_no_promise_is_broken_by_2000_turns_on_dynamodb(
    tmp_path: Path, ministack_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"soak-{uuid4().hex[:8]}"
    environ = {
        "IBID_STORE": "dynamodb",
        "IBID_APP_TABLE": f"{prefix}-app",
        "IBID_CHECKPOINTS_TABLE": f"{prefix}-checkpoints",
        "IBID_WRITES_TABLE": f"{prefix}-writes",
        "IBID_BUCKET": prefix,
        "IBID_CREATE_TABLES": "true",
        "AWS_ENDPOINT_URL": ministack_url,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    data = tmp_path / "data"

    problems, kills = await soak(data, tmp_path / "sources", environ=environ, turns=2_000, seed=8)

    assert kills > 100
    assert problems == []
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert await _findings(read_settings(environ, data=data)) == []
