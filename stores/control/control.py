"""The control store's protocol: gates, quotas and the function registry, versioned as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.function_spec import FunctionSpec
from ...model.limits import Gate, Quota, Snapshot


class Control(Protocol):
    """Each change raises the version, and is durable when it returns."""

    async def snapshot(self) -> Snapshot:
        """Everything now."""

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        """The snapshot as soon as its version differs from `version`; None after `timeout` seconds."""

    async def put_gate(self, gate: Gate) -> int:
        """Sets a gate (replacing the one of the same function and collection); action `resume` removes it."""

    async def put_quota(self, quota: Quota) -> int:
        """Sets a function's limits; all zero removes them."""

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        """Adds functions or replaces those of the same name; no new version when nothing changed."""


__all__ = ["Control", "Gate", "Quota", "Snapshot"]
