"""The tables of the section on runs."""

from collections.abc import Mapping, Sequence

from tests.bench.markdown import table
from tests.bench.runs import Figures

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
        ("store", "tokens/s", "events", "behind: p50", "p95", "most", "asked"),
        (
            (
                one.store,
                one.rate,
                f"{one.events:,}",
                f"{one.p50_s:.2f} s",
                f"{one.p95_s:.2f} s",
                f"{one.most_s:.2f} s",
                f"at most {MOST_LAG_S} s",
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
            "unlike a reload",
            "seconds",
            "resident at the peak",
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
                one.unlike_reload,
                f"{one.seconds:.1f}",
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
        ("streams", "in memory, an event", "of it with SQLite"),
        (
            (streams, f"{micros:.0f} us", f"{ratio:.2f}")
            for streams, (micros, ratio) in ratios.items()
        ),
    )


def units(found: Sequence[tuple[int, int, float, float]]) -> str:
    """Write what a turn costs."""
    return table(
        ("tokens/s", "turns before", "written", "read", "asked"),
        (
            (
                rate,
                history,
                f"{written:g}",
                f"{read:g}",
                "at most 14 and 8" if rate == found[0][0] else "to be stated",
            )
            for rate, history, written, read in found
        ),
    )
