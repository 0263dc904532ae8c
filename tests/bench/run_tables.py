"""The tables of the section on runs."""

from collections.abc import Mapping, Sequence

from tests.bench.markdown import table
from tests.bench.runs import Figures
from tests.bench.turn_cost import MOST_READ, MOST_WRITTEN, PlainTurn
from tests.fakes.capacity import PURPOSES, Bill

MOST_LAG_S, MOST_SILENCE_S = 1.5, 1.0


def replays(both: Sequence[Figures]) -> str:
    """Write how many suffixes were asked for, and how many were not what was shown."""
    return table(
        ("store", "events of the run", "values of Last-Event-ID", "unlike what was shown"),
        (
            (one.store, one.events, one.suffixes, one.unlike)
            for one in (figures.replay for figures in both)
        ),
    )


def lags(both: Sequence[Figures]) -> str:
    """Write how far followers were behind."""
    return table(
        (
            "store",
            "tokens/s",
            "events",
            "behind: p50",
            "p95",
            "most",
            "asked",
            "streams unlike the asker's",
        ),
        (
            (
                one.store,
                one.rate,
                f"{one.events:,}",
                f"{one.p50_s:.2f} s",
                f"{one.p95_s:.2f} s",
                f"{one.most_s:.2f} s",
                f"at most {MOST_LAG_S} s",
                one.unlike,
            )
            for figures in both
            for one in figures.lags
        ),
    )


def cancels(both: Sequence[Figures]) -> str:
    """Write how long a cancelled stream went on."""
    return table(
        (
            "store",
            "tokens/s",
            "cancelled",
            "to silence: p50",
            "p95",
            "most",
            "asked",
            "stored part unlike the shown one",
        ),
        (
            (
                one.store,
                one.rate,
                one.runs,
                f"{one.p50_s:.2f} s",
                f"{one.p95_s:.2f} s",
                f"{one.most_s:.2f} s",
                f"p95 under {MOST_SILENCE_S:g} s",
                one.unlike_reload,
            )
            for figures in both
            for one in figures.cancels
        ),
    )


def waves(both: Sequence[Figures]) -> str:
    """Write what became of many streams at once, and of the server's memory."""
    return table(
        (
            "store",
            "wave",
            "streams at once",
            "events",
            "with a lost event or not one terminator",
            "ended by an error",
            "text unlike a reload",
            "terminator unlike the kept one",
            "seconds",
            "resident before",
            "at the peak",
            "after",
        ),
        (
            (
                one.store,
                one.number,
                one.streams,
                f"{one.events:,}",
                one.faults,
                one.errors,
                one.unlike_text,
                one.unlike_end,
                f"{one.seconds:.1f}",
                f"{one.before_mib:.0f} MiB",
                f"{one.peak_mib:.0f} MiB",
                f"{one.after_mib:.0f} MiB",
            )
            for figures in both
            for one in figures.waves
        ),
    )


def journal(ratios: Mapping[int, tuple[float, float]]) -> str:
    """Write what keeping costs."""
    return table(
        ("streams", "CPU an event, in memory", "of it with SQLite"),
        (
            (streams, f"{micros:.0f} us", f"{ratio:.2f}")
            for streams, (micros, ratio) in ratios.items()
        ),
    )


def growth(both: Sequence[Figures]) -> str:
    """Say by how much the memory after a wave grew from the last but one to the last."""
    return "; ".join(
        f"{last.store} {last.after_mib - before.after_mib:+.1f} MiB"
        for before, last in (figures.waves[-2:] for figures in both)
    )


def units(turns: Sequence[PlainTurn]) -> str:
    """Write what a turn costs, and for what."""
    purposes = [what for what in PURPOSES.values() if any(turn.bill.calls[what] for turn in turns)]
    head = [f"{turn.rate}/s after {turn.history} turns" for turn in turns]
    rows = [[what, *(_cost(turn.bill, what) for turn in turns)] for what in purposes]
    total = [f"**{turn.written:g} w, {turn.read:g} r**" for turn in turns]
    asked = [
        f"at most {MOST_WRITTEN:g} w, {MOST_READ:g} r"
        if turn.rate == turns[0].rate
        else "to be stated"
        for turn in turns
    ]
    return table(
        ("what for", *head), [*rows, ["all, but for the project", *total], ["asked", *asked]]
    )


def _cost(bill: Bill, what: str) -> str:
    return f"{bill.calls[what]}: {bill.written[what]:g} w, {bill.read[what]:g} r"
