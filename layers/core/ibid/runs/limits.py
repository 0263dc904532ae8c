"""How many runs, how long, how often."""

from dataclasses import dataclass

from ibid.ports.runs import PlaceLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Bounds of the runs of one process; all are above 0, but for what says otherwise.

    Attributes:
        process: Runs at once in the process; more wait.
        tenant: The same, of one tenant, counted in the store.
        subject: The same, of one subject of a tenant.
        run_timeout_s: Seconds from a run's start to its time-out, the wait for a place included.
        margin_s: Seconds before a given deadline at which a run times out.
        stop_s: Seconds that a stopped turn gets to clean up before the run ends without it.
        keep_s: Seconds to try to keep an end while the store is away.
        beat_s: Seconds between two beats of a lease.
        term_s: Seconds without a beat after which a lease is dead; several times `beat_s`.
        attach_s: Seconds after which a run that nobody has begun to read counts as left.
        unread: Entries that may wait for a reader before the turn waits for it.
        flush_s: Seconds from the first event that is not kept to the write that keeps it, and
            from a write that failed to the next one; 0 or more.
        flush_bytes: Text that is not kept before it is written at once.
        boundary_s: Seconds since the last write after which a node's boundary is kept at once; 0
            or more.
        look_s: Seconds between two looks for a cancel while there is nothing to keep.
        fresh_s: Seconds for which a look for a cancel need not be repeated; 0 or more.
        poll_s: Seconds between two looks at a run of another process, or for a place.
        pause_s: Seconds for which a clarification can be answered.
        queue_wait_s: Seconds for which a run waits in a queue before it is ended.
        journal_s: Seconds for which a journal is kept after its last write.
    """

    process: int = 64
    tenant: int = 8
    subject: int = 2
    run_timeout_s: float = 180.0
    margin_s: float = 5.0
    stop_s: float = 2.0
    keep_s: float = 5.0
    beat_s: float = 5.0
    term_s: float = 15.0
    attach_s: float = 15.0
    unread: int = 64
    flush_s: float = 0.8
    flush_bytes: int = 8_192
    boundary_s: float = 0.25
    look_s: float = 0.8
    fresh_s: float = 0.02
    poll_s: float = 0.3
    pause_s: float = 86_400.0
    queue_wait_s: float = 900.0
    journal_s: float = 7 * 86_400.0

    @property
    def places(self) -> PlaceLimits:
        """What the store counts."""
        return PlaceLimits(tenant=self.tenant, subject=self.subject)
