"""The port for gates and quotas: what operators set, one function at a time."""

from __future__ import annotations

from typing import Protocol

from ...model.limits import Gate, Quota


class LimitPort(Protocol):
    """Gates and quotas, written. Both answer the version of the control store that the change made, and raise
    InvalidRequest or UnknownFunction."""

    async def set_gate(self, gate: Gate) -> int:
        """Sets a gate; action `resume` removes it, and is harmless where there is none."""

    async def set_quota(self, quota: Quota) -> int:
        """Sets all limits of a function; all zero removes them."""
