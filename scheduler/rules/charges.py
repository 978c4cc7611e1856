"""Charges: which limits an item of a kind pays, resolved once for each kind (FL1, FL4).

A quota of one tenant goes before one `per: tenant` of the same dimension. Of `per: tenant` each tenant gets a limit of
its own, up to `max_values` of them; the rest and the empty label share one, so that invented tenants evade nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...model.limits import USUAL_VALUES, Quota, QuotaKey
from ...model.workload import Kind
from .limit import Limit

_NONE = ("", "", "", "", "")


class Charges:
    """The limits there are. Invariants: a quota that limits nothing has no limit here; a tenant pays the same limit of
    a quota for as long as it is remembered; of one quota at most `max_values` tenants have their own."""

    def __init__(self) -> None:
        self._quotas: dict[QuotaKey, Quota] = {}
        self._version = 0
        self._limits: dict[QuotaKey, Limit] = {}
        self._per: dict[QuotaKey, dict[str, Limit]] = {}
        self._shared: dict[QuotaKey, Limit] = {}
        self._declared: dict[str, tuple[str, ...]] = {}
        self._bases: dict[str, tuple[QuotaKey, ...]] = {}

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        return any(quota.concurrency or quota.rate for quota in self._quotas.values())

    @property
    def anything(self) -> bool:
        """Whether any quota is set."""
        return bool(self._quotas)

    def quota(self, key: QuotaKey) -> Quota | None:
        """The quota of that, if one is set."""
        return self._quotas.get(key)

    def all(self) -> Iterable[Limit]:
        """Every limit that was met."""
        yield from self._limits.values()
        yield from self._shared.values()
        for values in self._per.values():
            yield from values.values()

    def set(self, quotas: Iterable[Quota], version: int, now: float) -> bool:
        """Replaces all quotas; whether that changed anything. What gathered in a bucket stays; what runs is for the
        caller to count."""
        before, after = self._quotas, {quota.key: quota for quota in quotas}
        if before == after:
            return False
        self._quotas, self._version = after, version
        self._bases.clear()
        for key in before.keys() | self._quotas.keys():
            old, new = before.get(key), self._quotas.get(key)
            if old == new:
                continue
            if new is None or not (new.concurrency or new.rate):
                self._limits.pop(key, None)
                self._per.pop(key, None)
                self._shared.pop(key, None)
                continue
            for limit in self._of(key):
                limit.change(new, now, version)
        return True

    def declare(self, downstreams: Mapping[str, tuple[str, ...]]) -> bool:
        """What functions say that they call; whether that changed anything."""
        fresh = {name: called for name, called in downstreams.items() if self._declared.get(name, ()) != called}
        self._declared.update(fresh)
        for name in fresh:
            self._bases.pop(name, None)
        return bool(fresh)

    def downstreams(self, function: str) -> tuple[str, ...]:
        """What a function calls: what it declares, and what its quota says."""
        quota = self._quotas.get((function, "", "", "", ""))
        return tuple(dict.fromkeys((*self._declared.get(function, ()), *(quota.downstreams if quota else ()))))

    def resolve(self, kind: Kind, now: float) -> tuple[Limit, ...]:
        """The limits that each item of a kind pays."""
        if not self._quotas:
            return ()
        bases = self._bases.get(kind.function)
        if bases is None:
            bases = self._bases[kind.function] = self._bases_of(kind.function)
        found = []
        tenant, quotas = kind.tenant, self._quotas
        for base in bases:
            if base is not _NONE and base in quotas:
                found.append(self._limit(base, now))
            one = (base[0], "", tenant, base[3], "")
            if tenant and one in quotas:
                found.append(self._limit(one, now))
            elif (each := (base[0], "", "", base[3], "tenant")) in quotas:
                found.append(self._value(each, tenant, now))
        if kind.collection and (key := (kind.function, kind.collection, "", "", "")) in quotas:
            found.append(self._limit(key, now))
        return tuple([limit for limit in found if limit is not None])

    def weight(self, kind: Kind) -> tuple[float, bool]:
        """The weight of a kind's tenant, and whether it is for this function alone."""
        quotas = self._quotas
        for function in (kind.function, ""):
            for key in ((function, "", kind.tenant, "", ""), (function, "", "", "", "tenant")):
                if (quota := quotas.get(key)) is not None and quota.weight and any(key):
                    return quota.weight, bool(function)
        return 1.0, False

    def forget(self, used: Collection[Limit], now: float) -> None:
        """Drops the limits of tenants that nobody uses and that are as good as new."""
        for values in self._per.values():
            for tenant in [tenant for tenant, limit in values.items() if limit not in used and limit.idle(now)]:
                del values[tenant]

    def _bases_of(self, function: str) -> tuple[QuotaKey, ...]:
        """The dimensions that an item of a function is in beside its collection, each with its tenants."""
        called = [("", "", "", name, "") for name in self.downstreams(function)]
        return ((function, "", "", "", ""), _NONE, *called)

    def _of(self, key: QuotaKey) -> list[Limit]:
        found = [self._limits[key]] if key in self._limits else []
        found += [self._shared[key]] if key in self._shared else []
        return [*found, *self._per.get(key, {}).values()]

    def _limit(self, key: QuotaKey, now: float) -> Limit | None:
        limit, quota = self._limits.get(key), self._quotas[key]
        if limit is None and (quota.concurrency or quota.rate):
            limit = self._limits[key] = Limit(quota.what, quota, now, self._version)
        return limit

    def _value(self, key: QuotaKey, tenant: str, now: float) -> Limit | None:
        quota = self._quotas[key]
        if not (quota.concurrency or quota.rate):
            return None
        values = self._per.setdefault(key, {})
        limit = values.get(tenant)
        shared = self._shared.get(key)
        crowded = shared is not None and not shared.idle(now)  # until it is, who pays it goes on to
        if limit is None and tenant and not crowded and len(values) < (quota.max_values or USUAL_VALUES):
            what = quota.what.replace("each tenant", f"tenant {tenant}")
            limit = values[tenant] = Limit(what, quota, now, self._version)
        limit = limit or shared
        if limit is None:
            what = quota.what.replace("each tenant", "tenants beyond max_values, and none")
            limit = self._shared[key] = Limit(what, quota, now, self._version)
        return limit
