"""The results' protocol: return values, kept for a bounded time and fetched by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Results(Protocol):
    """Results by workload id. Their retention (seconds and bytes) is the engine's configuration; the oldest go first,
    and where there is no room, the oldest of the tenant that has most bytes."""

    async def put(self, results: Mapping[str, bytes]) -> None:
        """Keeps results by workload id; durable when it returns."""

    async def put_of(self, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
        """Keeps results, some of which are of tenants, by workload id."""

    async def get(self, id: str) -> bytes | None:
        """One result; None when there is none (any more)."""

    async def gone(self, id: str) -> bool:
        """Whether a result of this id was here and newer ones pushed it out. Known of the last GONE of them."""


#: Results that were pushed out whose ids are known.
GONE = 100_000
