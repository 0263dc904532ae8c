"""Other machines, for what depends on clocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import time_ns
from unittest.mock import patch

from langgraph.checkpoint.base import id as generator


@contextmanager
def machine(*, minutes_ahead: float) -> Iterator[None]:
    """Be another machine: its clock is off, and it has made no checkpoint id yet."""
    off = int(minutes_ahead * 60e9)
    with (
        patch.object(generator, "_last_v6_timestamp", None),
        patch("time.time_ns", lambda: time_ns() + off),
    ):
        yield
