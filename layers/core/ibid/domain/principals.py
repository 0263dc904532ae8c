"""Who is asking."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """One subject of one tenant; both are 1 to 128 characters, opaque, compared exactly."""

    tenant: str
    subject: str
