"""Forks of a process that has checkpoint files open.

SQLite keeps one record of its locks for each file and process. A fork copies the record and not
the locks: whatever the child opened then would stand unlocked, and the last other process to
close the file would take the log away from under it. So no connection is open while this process
forks; both processes open theirs again with their next call.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar
from weakref import WeakSet

T = TypeVar("T")


class Forked(Protocol):
    """What has connections."""

    def leave(self) -> None:
        """Close all connections."""
        ...

    def come_to(self) -> None:
        """Begin anew in a child, which has none of its parent's threads."""
        ...


class Gate:
    """Lets work pass, and a fork only while there is none."""

    def __init__(self) -> None:
        self._turn = threading.Condition(threading.Lock())
        self._members: WeakSet[Forked] = WeakSet()
        self._under_way = 0
        self._forking = False

    def admit(self, member: Forked) -> None:
        """Count on a member's connections from now on."""
        with self._turn:
            self._members.add(member)

    def dismiss(self, member: Forked) -> None:
        """Close a member's connections, and count on them no more; repeatable."""
        self.run(member.leave)
        with self._turn:
            self._members.discard(member)

    def run(self, work: Callable[[], T]) -> T:
        """Do what uses connections, once no fork is under way."""
        with self._turn:
            self._turn.wait_for(lambda: not self._forking)
            self._under_way += 1
        try:
            return work()
        finally:
            with self._turn:
                self._under_way -= 1
                self._turn.notify_all()

    def before(self) -> None:
        """Wait for the work under way, keep the rest out, and close what is open."""
        self._turn.acquire()  # until the fork is over: a child must not find it another thread's
        self._turn.wait_for(lambda: not self._forking)
        self._forking = True
        self._turn.wait_for(lambda: not self._under_way)
        for member in self._members:
            member.leave()

    def in_parent(self) -> None:
        """Go on."""
        self._forking = False
        self._turn.notify_all()
        self._turn.release()

    def in_child(self) -> None:
        """Go on without the parent's threads."""
        for member in self._members:
            member.come_to()
        self.in_parent()


gate = Gate()

if sys.platform != "win32":
    os.register_at_fork(
        before=gate.before, after_in_parent=gate.in_parent, after_in_child=gate.in_child
    )
