"""Forked processes: some are to die on the way, and what they have told outlives them.

The process that forks imports once, and opens no file and no loop itself.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

Tell = Callable[..., None]


@dataclass(frozen=True, kw_only=True)
class Child:
    """What became of one.

    Attributes:
        was_killed: Whether it died on the way.
        told: What it told, each as a list of JSON values; at once, so that nothing is lost.
    """

    was_killed: bool
    told: list[list[Any]]


def dying(main: Callable[[Tell], Coroutine[None, None, None]]) -> Child:
    """Fork, let the child do its work, and wait for its end."""
    reading, writing = os.pipe()

    def tell(*what: object) -> None:
        os.write(writing, (json.dumps(what) + "\n").encode())

    if not (child := os.fork()):
        os.close(reading)
        code = 1
        try:
            asyncio.run(main(tell))
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as lines:
        told = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a child failed before it was to die")
    return Child(was_killed=os.WIFSIGNALED(status), told=told)


def forked(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Do something in a child that lives, so that this process never has a loop or a thread."""
    sys.stdout.flush()
    if not (child := os.fork()):
        code = 1
        try:
            asyncio.run(main())
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("a child failed")
