"""The one edge at which a helper's failure is no failure of the turn."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


async def or_none(work: Awaitable[T], *, helper: str, timeout_s: float) -> T | None:
    """Await a helper's work; None if it failed or took longer than `timeout_s` seconds.

    Raises:
        CancelledError: As it came: a turn that is to stop has no use for a fallback.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except Exception as error:  # noqa: BLE001 - an edge: the turn goes on without the helper
        logger.warning("helper fell back", extra={"helper": helper, "error": type(error).__name__})
        return None
