"""How many threads one model's arithmetic may use."""

import os

_MOST = 4  # a small model gains nothing from more


def default_threads() -> int:
    """Return the number of cores, at most four."""
    return max(1, min(os.cpu_count() or 1, _MOST))
