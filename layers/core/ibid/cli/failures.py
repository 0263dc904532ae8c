"""Failures as a person reads them: one line on stderr and an exit status."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ibid.cli.logs import log_to_stderr
from ibid.cli.terminal import printable
from ibid.domain.errors import IbidError, Misconfigured

FAILED = 1
MISCONFIGURED = 2
INTERRUPTED = 130


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn our errors into a line on stderr; exit with 2 for a setting, 1 for the rest."""
    log_to_stderr()
    if sys.stdout is None:
        raise typer.Exit(FAILED)
    try:
        yield
    except Misconfigured as error:
        typer.echo(f"ibid: {printable(str(error))}", err=True)
        raise typer.Exit(MISCONFIGURED) from None
    except IbidError as error:
        typer.echo(f"ibid: {printable(str(error))} ({error.code})", err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:  # of what was printed to: a closed pipe, a full disk
        _discard_output()
        if not isinstance(error, BrokenPipeError):
            typer.echo(f"ibid: can't write: {error.strerror}", err=True)
        raise typer.Exit(FAILED) from None


def _discard_output() -> None:
    """Send what is still buffered nowhere, else the interpreter tries to write it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
