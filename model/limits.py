"""Limits that operators set, gates and quotas by function, and the snapshots that watchers get of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .function_spec import FunctionSpec

#: The highest number that a quota may have.
HIGHEST_LIMIT = 1e9


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate of a function or a collection. `action` is pause or drop; an empty collection means the whole function.
    `version` is that of the control store which it made; two gates that differ in nothing else are the same."""

    function: str
    collection: str
    action: str
    who: str = ""
    why: str = ""
    since: float = 0.0
    version: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one function; 0 means no limit, a burst of 0 means the rate (at least 1), a weight of 0 means 1."""

    function: str
    concurrency: int = 0
    rate: float = 0.0
    burst: float = 0.0
    weight: float = 0.0

    def fault(self) -> str:
        """What is wrong with its numbers; empty: nothing."""
        for what in ("concurrency", "rate", "burst", "weight"):
            value = getattr(self, what)
            if not (math.isfinite(value) and 0 <= value <= HIGHEST_LIMIT):
                return f"{what} is {value}: expected 0 (no limit) to {HIGHEST_LIMIT:g}"
        if self.burst and not self.rate:
            return f"burst is {self.burst:g} but there is no rate: give both or neither"
        return ""


@dataclass(slots=True)
class Snapshot:
    """Gates, quotas and the function registry, whole, at one version."""

    version: int = 0
    gates: list[Gate] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    functions: list[FunctionSpec] = field(default_factory=list)
