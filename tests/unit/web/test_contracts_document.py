"""`docs/contracts.md` says what is built, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

from starlette.routing import Route

from ibid.domain.errors import IbidError, NotFound, Refused, TurnFailed, Unavailable
from ibid.runs.terminator import Stop
from ibid.web.event_registry import EVENT_MODELS
from tests.fakes.app import FakeApp

TEXT = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text(encoding="utf-8")
BASES = {Refused, Unavailable, TurnFailed, NotFound}
ABSENT = {"UNAUTHORIZED"}  # nobody is unknown on one machine


def codes_of(error: type[IbidError]) -> Iterator[str]:
    if error not in BASES:
        yield error.code
    for kind in error.__subclasses__():
        yield from codes_of(kind)


def test_every_route_is_in_the_table_and_no_other() -> None:
    listed = set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", TEXT, flags=re.MULTILINE))

    built = {
        f"{method} {route.path}"
        for route in FakeApp().app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert listed == built


def events_after(heading: str) -> list[str]:
    section = TEXT[TEXT.index(heading) :]
    table = section[section.index("| event | data |") :].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE)


def test_every_event_is_in_its_surfaces_table_and_no_other() -> None:
    assert events_after("### As a stream") == list(EVENT_MODELS["messages"])
    assert events_after("## Ask, and what is asked back") == list(EVENT_MODELS["ask"])


def test_every_code_that_a_client_can_meet_is_named() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", TEXT))

    met = {code for base in BASES for code in codes_of(base)} - ABSENT
    # a client that has gone reads no terminator
    ends = {stop.value[0] for stop in Stop} - {Stop.DISCONNECTED.value[0]}

    assert named - {"IBID_FOLDERS"} >= met | ends
