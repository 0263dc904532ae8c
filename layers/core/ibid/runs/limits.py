"""How many runs, how long, how often."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Bounds of the runs of one process; all are above 0.

    Attributes:
        process: Runs at once in the process; more wait.
        tenant: The same, of one tenant.
        subject: The same, of one subject of a tenant.
        run_timeout_s: Seconds from a run's start to its time-out, the wait for a place included.
        stop_s: Seconds that a stopped turn gets to clean up before the run ends without it.
        keep_s: Seconds to try to keep an end while the store is away.
        beat_s: Seconds between two beats of a lease.
        term_s: Seconds without a beat after which a lease is dead; several times `beat_s`.
        attach_s: Seconds after which a run that nobody has begun to read counts as left.
        unread: Entries that may wait for a reader before the turn waits for it.
    """

    process: int = 64
    tenant: int = 8
    subject: int = 2
    run_timeout_s: float = 180.0
    stop_s: float = 2.0
    keep_s: float = 5.0
    beat_s: float = 5.0
    term_s: float = 15.0
    attach_s: float = 15.0
    unread: int = 64
