"""The port for gates and quotas: what operators set."""

from __future__ import annotations

from typing import Protocol

from ...model.gate import Gate
from ...model.limits import Quota, QuotaChange
from ...model.quotas_in_force import InForce


class LimitPort(Protocol):
    """Gates and quotas, written. Each change answers the version of the control store that it made, and raises
    InvalidRequest or UnknownFunction."""

    async def set_gate(self, gate: Gate) -> int:
        """Sets a gate; action `resume` removes it, and is harmless where there is none."""

    async def set_quota(self, quota: Quota) -> int:
        """Sets one quota, whole; a quota without limits is removed."""

    async def apply_quotas(self, change: QuotaChange) -> int:
        """Replaces all quotas, as one version, with who and why. `change.version` is the version that it was made from;
        raises Conflict where another one came between."""

    async def quota_changes(self) -> list[QuotaChange]:
        """The versions of the quotas that are kept, the newest first."""

    async def limits_in_force(self) -> list[InForce]:
        """The schedulers that watch this gateway, or did a few minutes ago, each with the quotas that it has."""
