"""The highest priority that may be asked for: of each function and tenant, by their quotas.

As of limits, every quota that names the item counts, so the least urgent decides; and a quota of one tenant goes before
one for each tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...model.limits import Quota, QuotaKey
from ...model.priority import HIGHEST, Priority

#: Nothing bounds it.
ANY = int(HIGHEST)
_RANKS = {level.label: level for level in Priority}


class HighestPriorities:
    """The bounds as the gateway last heard. `changes` counts how often they became others."""

    def __init__(self) -> None:
        self._of: Mapping[QuotaKey, int] = {}
        self.changes = 0

    def replace(self, quotas: Iterable[Quota]) -> None:
        """Takes all quotas. What a later version calls a level is none here."""
        found = {quota.key: int(_RANKS[quota.highest]) for quota in quotas if quota.highest in _RANKS}
        if found != self._of:
            self._of = found
            self.changes += 1

    def of(self, function: str, tenant: str) -> int:
        """The rank that the function's items of this tenant may have at most: none is more urgent."""
        if not self._of:
            return ANY
        whole = self._of.get((function, "", "", "", ""), ANY)
        return max(whole, self._of_tenant("", tenant), self._of_tenant(function, tenant))

    def _of_tenant(self, function: str, tenant: str) -> int:
        own = self._of.get((function, "", tenant, "", "")) if tenant else None
        return self._of.get((function, "", "", "", "tenant"), ANY) if own is None else own
