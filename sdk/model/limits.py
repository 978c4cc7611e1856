"""What operators set: gates and quotas, by function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gate:
    """`action` is pause or drop; an empty collection means the whole function."""

    function: str
    collection: str
    action: str
    who: str = ""
    why: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one function; 0 means no limit, a burst of 0 means the rate (at least 1), a weight of 0 means 1."""

    function: str
    concurrency: int = 0
    rate: float = 0.0
    burst: float = 0.0
    weight: float = 0.0
