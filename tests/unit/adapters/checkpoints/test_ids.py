"""Ids that rise whatever the clocks say."""

import time

import pytest
from langgraph.checkpoint.base import id as generator
from langgraph.checkpoint.base.id import uuid6

from ibid.adapters.checkpoints.ids import is_above, rise_above, ticks


def test_ids_rise_above_one_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_last_v6_timestamp", None)
    ahead = time.time_ns() + 300 * 10**9
    with monkeypatch.context() as clock:
        clock.setattr(time, "time_ns", lambda: ahead)
        theirs = str(uuid6())
    monkeypatch.setattr(generator, "_last_v6_timestamp", None)
    assert str(uuid6()) < theirs

    rise_above(theirs)

    assert str(uuid6()) > theirs
    assert is_above(str(uuid6()), theirs)
    assert not is_above(theirs, str(uuid6()))


def test_an_id_of_another_kind_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_last_v6_timestamp", 5)

    for other in ("mine", "1f0b2c5a-0000-4000-8000-000000000000"):
        rise_above(other)
        assert ticks(other) is None
        assert is_above(other, str(uuid6()))
