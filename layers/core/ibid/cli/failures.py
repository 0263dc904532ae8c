"""Failures as a person reads them: one line on stderr and an exit status."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ibid.cli.logs import log_to_stderr
from ibid.cli.terminal import printable
from ibid.domain.errors import IbidError, Misconfigured

FAILED = 1
MISCONFIGURED = 2


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn our errors into a line on stderr; exit with 2 for a setting, 1 for the rest."""
    log_to_stderr()
    try:
        yield
    except Misconfigured as error:
        typer.echo(f"ibid: {printable(str(error))}", err=True)
        raise typer.Exit(MISCONFIGURED) from None
    except IbidError as error:
        typer.echo(f"ibid: {printable(str(error))} ({error.code})", err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
