"""The checkpoint bench's figures as tables: what was asked, and every saver beside the others."""

import math
import statistics
from collections.abc import Iterator, Mapping

from tests.bench.checkpoints import MODES, OURS, PEERS, Measured, Saver

Rows = list[tuple[str, ...]]

SAVERS = (
    "saver",
    "calls",
    "of the lease",
    "write units",
    "exit: calls",
    "exit: units",
    "10 sends",
    *(f"ms, {mode}" for mode in MODES),
    "kills that end wrong",
)
ASKED = ("what", "asked", "measured", "met")

_Turns = Mapping[str, Mapping[str, float]]


def savers(found: Measured) -> Rows:
    """Return a row a saver; of two figures the second is the resuming invocation's."""
    return [
        (
            f"{name} ({PEERS[name]})" if name in PEERS else f"**{name}**",
            _both(one.by_step, "calls"),
            _both(one.by_step, "lease_calls"),
            _both(one.by_step, "units"),
            _both(one.at_exit, "calls"),
            _both(one.at_exit, "units"),
            "fails" if one.fan_out is None else f"{one.fan_out:g}",
            *(
                "/".join(f"{_median(one, mode, at):.0f}" for at in (0, 1))
                if mode in one.ms
                else "-"
                for mode in MODES
            ),
            _kills(one),
        )
        for name, one in found.savers.items()
    ]


def asked(found: Measured) -> Rows:
    """Return a row for everything that issue 4 asks of the saver, and whether it is met."""
    return [(*row, "yes" if met else "**no**") for *row, met in _asked(found)]


def _asked(found: Measured) -> Iterator[tuple[str, str, str, bool]]:
    off, on = found.savers["ibid, fencing off"], found.savers["ibid"]
    limits: tuple[tuple[str, str, _Turns | None, str, tuple[int, int]], ...] = (
        ("fencing off, sync", "calls", off.by_step, "calls", (9, 9)),
        ("fencing off, sync", "write units", off.by_step, "units", (42, 28)),
        ("fencing off, exit", "calls", off.at_exit, "calls", (3, 3)),
        ("fencing off, exit", "write units", off.at_exit, "units", (9, 8)),
        ("fencing on, sync", "calls without the lease's", on.by_step, "calls", (9, 9)),
        ("fencing on, sync", "write units", on.by_step, "units", (60, 40)),
        ("fencing on, exit", "calls without the lease's", on.at_exit, "calls", (3, 3)),
    )
    for what, unit, turns, key, most in limits:
        met = turns is not None and all(
            turns[at][key] <= limit for at, limit in zip(("first", "second"), most, strict=True)
        )
        yield f"{what}: {unit}", f"at most {most[0]}/{most[1]}", _both(turns, key), met
    fan = [one.fan_out for one in (off, on)]
    yield (
        "fan-out of 10: calls, fencing off and on",
        "at most 19",
        ", ".join("fails" if one is None else f"{one:g}" for one in fan),
        all(one is not None and one <= 19 for one in fan),
    )
    for mode in MODES:
        for name in ("ibid", "ibid, fencing off"):
            yield _speed(found, name, mode)
    for name in OURS:
        one = found.savers[name]
        met = all(wrong == 0 < deaths for wrong, deaths in one.wrong.values())
        yield f"kill sweep, {name}: wrong, of all", "0", _kills(one), met
    first, last = found.stored[0], found.stored[-1]
    yield (
        "stored after " + ", ".join(f"{at:,}" for at, _, _ in found.stored) + " invocations",
        "bounded",
        f"{last[1]} items; " + ", ".join(f"{size:,}" for _, _, size in found.stored) + " bytes",
        last[1] == first[1] and last[2] < first[2] * 1.1,
    )
    for claim, (passed, tests) in found.claims.items():
        yield claim, "tests", f"{passed} of {tests} pass", passed == tests > 0


def _speed(found: Measured, name: str, mode: str) -> tuple[str, str, str, bool]:
    """Compare both invocations with the peer that is fastest at each, round by round.

    Slower is what the 95 % interval of the median difference says; it needs no distribution.
    """
    ours = found.savers[name]
    peers = [peer for peer in PEERS if mode in found.savers[peer].ms]
    asked, measured, met = [], [], True
    for at in (0, 1):
        medians = {peer: _median(found.savers[peer], mode, at) for peer in peers}
        fastest = min(medians, key=medians.__getitem__)
        theirs = found.savers[fastest]
        pairs = zip(ours.ms[mode], theirs.ms[mode], strict=True)
        differences = sorted(mine[at] - other[at] for mine, other in pairs)
        half = 0.98 * math.sqrt(len(differences))
        low = differences[max(0, math.floor(len(differences) / 2 - half))]
        high = differences[min(len(differences) - 1, math.ceil(len(differences) / 2 + half))]
        asked.append(f"{_median(theirs, mode, at):.1f} ({fastest})")
        measured.append(f"{_median(ours, mode, at):.1f} ({low:+.1f} to {high:+.1f})")
        met = met and low <= 0
    what = f"5 ms a call, {mode}: ms, {name}"
    return what, "no slower than " + ", ".join(asked), ", ".join(measured), met


def _median(one: Saver, mode: str, at: int) -> float:
    return statistics.median(both[at] for both in one.ms[mode])


def _both(turns: _Turns | None, key: str) -> str:
    return "fails" if turns is None else f"{turns['first'][key]:g}/{turns['second'][key]:g}"


def _kills(one: Saver) -> str:
    return ", ".join(f"{wrong}/{deaths} {name}" for name, (wrong, deaths) in one.wrong.items())
