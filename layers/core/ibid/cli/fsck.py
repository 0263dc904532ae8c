"""`ibid fsck`."""

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from ibid.bootstrap.checking import open_inventories
from ibid.cli.environment import settings_for
from ibid.cli.running import run
from ibid.cli.terminal import printable
from ibid.runs.findings import Finding
from ibid.runs.fsck import check


def check_stores(*, data: Path | None, as_json: bool) -> bool:
    """Check all that the stores hold, print what is wrong, and say if nothing is."""
    findings = run(_findings(data))
    if as_json:
        rows = [{"kind": finding.kind, "ids": dict(finding.ids)} for finding in findings]
        print(json.dumps({"findings": rows}))  # noqa: T201 - a script reads it
    else:
        for finding in findings:
            typer.echo(_line(finding))
        typer.echo(f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}", err=True)
    return not findings


async def _findings(data: Path | None) -> Sequence[Finding]:
    async with open_inventories(settings_for(data=data)) as stores:
        return await check(stores.records, checkpoints=stores.checkpoints)


def _line(finding: Finding) -> str:
    names = " ".join(f"{name}={printable(value)}" for name, value in finding.ids.items())
    return f"{finding.kind} {names}"
