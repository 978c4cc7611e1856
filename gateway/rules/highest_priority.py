"""The highest priority that each function and tenant may ask for, by their quotas.

As with limits, every quota that names the item counts, so the least urgent one decides; a quota of one tenant counts
instead of one for each tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...model.limits import Quota, QuotaKey
from ...model.priority import HIGHEST, Priority

#: The rank where no quota bounds it.
ANY = int(HIGHEST)
_RANKS = {level.label: level for level in Priority}


class HighestPriorities:
    """The bounds, as they were last read. `changes` counts how often they changed."""

    def __init__(self) -> None:
        self._of: Mapping[QuotaKey, int] = {}
        self.changes = 0

    def replace(self, quotas: Iterable[Quota]) -> None:
        """Replaces all quotas. A priority that only a later version knows is no bound here."""
        found = {quota.key: int(_RANKS[quota.highest]) for quota in quotas if quota.highest in _RANKS}
        if found != self._of:
            self._of = found
            self.changes += 1

    def of(self, function: str, tenant: str) -> int:
        """The most urgent rank that the function's items of this tenant may have."""
        if not self._of:
            return ANY
        whole = self._of.get((function, "", "", "", ""), ANY)
        return max(whole, self._of_tenant("", tenant), self._of_tenant(function, tenant))

    def _of_tenant(self, function: str, tenant: str) -> int:
        own = self._of.get((function, "", tenant, "", "")) if tenant else None
        return self._of.get((function, "", "", "", "tenant"), ANY) if own is None else own
