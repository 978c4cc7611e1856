"""The results' protocol: return values, kept for a bounded time and fetched by id."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

NO_TENANTS: Mapping[str, str] = MappingProxyType({})


class Results(Protocol):
    """Results by workload id. Their retention (seconds and bytes) is the engine's configuration; the oldest go first,
    and where there is no room, the oldest of the tenant that has most bytes."""

    async def put(self, results: Mapping[str, bytes], tenants: Mapping[str, str] = NO_TENANTS) -> None:
        """Keeps results by workload id; durable when it returns. `tenants`: of those that have one."""

    async def get(self, id: str) -> bytes | None:
        """One result; None when there is none (any more)."""
