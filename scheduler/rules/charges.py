"""Charges: which limits an item of a kind pays, resolved once for each kind (FL1, FL4).

A quota of one tenant goes before one `per: tenant` of the same dimension. Of `per: tenant` each tenant gets a limit of
its own, up to `max_values` of them; the rest and the empty label share one, so that invented tenants evade nothing.
What a downstream was found to take (adaptive.py) is one limit more for all who call it, and for an account of a tenant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from itertools import chain
from typing import NamedTuple

from ...model.limits import USUAL_VALUES, Quota, QuotaKey
from ...model.workload import Kind
from .adaptive import REST, AdaptiveLimit
from .limit import Limit
from .reserve import Reserve
from .retry_budget import RetryBudget
from .unit_limit import UnitLimit


class _Paid(NamedTuple):
    """Limits that some items pay, with the weight of their tenant (0: none is set), and whether that is of their
    function alone."""

    limits: tuple[Limit, ...] = ()
    weight: float = 0.0
    own: bool = False


class Labels(NamedTuple):
    """Meaning of the empty labels of a kind, as `Closed` says it: the item without one, or every one."""

    exact: bool = False
    all_collections: bool = False
    all_tenants: bool = False


class _OfFunction(NamedTuple):
    """Limits that each item of a function pays. `tenants`: what its tenant pays besides, for what it calls and for
    all they use, shared by the functions that call the same. `own_tenants`, `collections`: there are quotas for tenants
    or collections of this function."""

    limits: tuple[Limit, ...]
    tenants: dict[str, _Paid]
    calls: tuple[str, ...]
    own_tenants: bool
    collections: bool


class Charges:
    """The limits there are, and the reserves. Invariants: a quota that limits nothing has no limit here; a tenant pays
    the same limit of a quota for as long as it is remembered; of one quota at most `max_values` tenants have their own.
    Of those that share one as many are remembered in `_sharing`, and go on to until nobody pays it or there are places
    again (`unshare`); where that is full, all do. `crowded` are the quotas of which no further tenant gets its own
    until one that nobody uses is forgotten. What was worked out for a function or a tenant is remembered until quotas
    change or tenants are forgotten, so that a kind that was never seen costs two look-ups."""

    def __init__(self) -> None:
        self._quotas: dict[QuotaKey, Quota] = {}
        self.reserves: dict[QuotaKey, Reserve] = {}
        self._version = 0
        self._limits: dict[QuotaKey, Limit] = {}
        self._per: dict[QuotaKey, dict[str, Limit]] = {}
        self._shared: dict[QuotaKey, Limit] = {}
        self._sharing: dict[QuotaKey, set[str]] = {}
        self.crowded: set[QuotaKey] = set()
        self._declared: dict[str, tuple[str, ...]] = {}
        self._with_tenants: set[str] = set()
        self._with_collections: set[str] = set()
        self._functions: dict[str, _OfFunction] = {}
        self._tenants: dict[tuple[str, ...], dict[str, _Paid]] = {}
        self._adaptive: Mapping[tuple[str, str], AdaptiveLimit] = {}
        self._full: frozenset[str] = frozenset()
        self._budgets: Mapping[str, RetryBudget] = {}
        self._calling_accounts: frozenset[str] = frozenset()

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        found = bool(self._adaptive or self._budgets)
        return found or any(quota.limits for quota in self._quotas.values())

    @property
    def measuring(self) -> bool:
        """Whether anything is limited in units of one's own."""
        return any(quota.units for quota in self._quotas.values())

    @property
    def anything(self) -> bool:
        """Whether any quota is set, or anything is limited."""
        return bool(self._quotas or self._adaptive or self._budgets)

    @property
    def bounds_running(self) -> bool:
        """Whether a quota says how many run at once."""
        return any(quota.concurrency for quota in self._quotas.values())

    @property
    def weighed(self) -> bool:
        """Whether any quota is set: turns count cost then (FL8)."""
        return bool(self._quotas)

    @property
    def apart(self) -> tuple[frozenset[str], frozenset[str]]:
        """The functions whose collections, and those whose tenants, are told apart; empty: those of all."""
        return frozenset(self._with_collections), frozenset(self._with_tenants | self._calling_accounts)

    def kin(self, kind: Kind) -> Kind:
        """The kind as far as quotas tell items of its function apart: those of one share a flow. A label that no quota
        asks for costs nothing, and gives nobody a turn of its own."""
        collections, tenants = self._told_apart(kind.function)
        collection = kind.collection if collections else ""
        tenant = kind.tenant if tenants else ""
        if collection == kind.collection and tenant == kind.tenant:
            return kind
        return Kind(kind.function, kind.priority, collection, tenant)

    def labels(self, kin: Kind) -> Labels:
        """The meaning of the empty labels of such a kind. Where they all mean every one, nothing need be exact."""
        collections, tenants = self._told_apart(kin.function)
        exact = (collections and not kin.collection) or (tenants and not kin.tenant)
        return Labels(True, not collections, not tenants) if exact else Labels()

    def _told_apart(self, function: str) -> tuple[bool, bool]:
        """Whether collections, and whether tenants, of a function are told apart."""
        collections = "" in self._with_collections or function in self._with_collections
        accounts = function in self._calling_accounts
        return collections, accounts or "" in self._with_tenants or function in self._with_tenants

    def quota(self, key: QuotaKey) -> Quota | None:
        """The quota of that, if one is set."""
        return self._quotas.get(key)

    def all(self) -> Iterable[Limit]:
        """Every limit that was met."""
        values = chain.from_iterable([each.values() for each in self._per.values()])
        for limit in chain(self._limits.values(), self._shared.values(), values):
            yield limit
            yield from limit.units
        yield from self._adaptive.values()
        for budget in self._budgets.values():
            yield budget
            yield budget.firsts

    def units(self) -> Iterable[tuple[QuotaKey, UnitLimit]]:
        """The unit limits that were met, but for those of each tenant, with the key of their quota."""
        for key, limit in self._limits.items():
            for unit in limit.units:
                yield key, unit

    def set(self, quotas: Iterable[Quota], version: int, now: float) -> bool:
        """Replaces all quotas. Returns whether that changed anything. Tokens gathered in a bucket stay; running items
        are for the caller to count. A quota that only says which priority may be asked for is the gateway's."""
        before, after = self._quotas, {quota.key: quota for quota in quotas if not quota.only_asks}
        if before == after:
            return False
        self._quotas, self._version = after, version
        self._with_tenants = {key[0] for key in after if key[2] or key[4]}
        self._with_collections = {key[0] for key in after if key[1]}
        self._see_accounts()
        self._functions.clear()
        self._tenants.clear()
        self.reserves = {key: self._reserve(quota, now) for key, quota in after.items() if quota.reserve}
        for key in before.keys() | self._quotas.keys():
            old, new = before.get(key), self._quotas.get(key)
            if old == new:
                continue
            if new is None or not new.limits:
                self._limits.pop(key, None)
                self._per.pop(key, None)
                self._shared.pop(key, None)
                self._sharing.pop(key, None)
                continue
            for limit in self._of(key):
                limit.change(new, now, version)
                limit.units = self._units(limit.name, new, now, limit.units)
        return True

    def _reserve(self, quota: Quota, now: float) -> Reserve:
        made = Reserve(quota.what, quota.reserve, lend=quota.lend, now=now)
        if (former := self.reserves.get(quota.key)) is not None:
            made.level = 0.0
            made.take(-former.left(now))
        return made

    def reserved(self, kind: Kind) -> tuple[Reserve, ...]:
        """The reserves that items of a kind may use."""
        if not self.reserves:
            return ()
        keys = [(kind.function, "", "", "", "")]
        if kind.tenant:
            keys += [("", "", kind.tenant, "", ""), (kind.function, "", kind.tenant, "", "")]
        return tuple([self.reserves[key] for key in keys if key in self.reserves])

    def declare(self, downstreams: Mapping[str, tuple[str, ...]]) -> bool:
        """Takes the downstreams that functions declare. Returns whether that changed anything."""
        fresh = {name: called for name, called in downstreams.items() if self._declared.get(name, ()) != called}
        self._declared.update(fresh)
        for name in fresh:
            self._functions.pop(name, None)
        if fresh and self._adaptive:
            self._see_accounts()
        return bool(fresh)

    def adapt(
        self,
        adaptive: Mapping[tuple[str, str], AdaptiveLimit],
        full: Collection[str],
        budgets: Mapping[str, RetryBudget],
    ) -> None:
        """The limits of downstreams, and of tenants of them, that adapt; the downstreams of which too many tenants have
        one, so that the others share one; and the budgets of retries."""
        self._adaptive, self._full, self._budgets = dict(adaptive), frozenset(full), dict(budgets)
        self._see_accounts()
        self._functions.clear()
        self._tenants.clear()

    def budget(self, function: str) -> RetryBudget | None:
        """The budget of a function's retries, if there is one."""
        return self._budgets.get(function)

    @property
    def declares(self) -> bool:
        """Whether any function calls a downstream."""
        return any(self._declared.values()) or any(quota.downstreams for quota in self._quotas.values())

    def callers(self, downstream: str) -> Set[str]:
        """The functions that call it."""
        known = {*self._declared, *(quota.function for quota in self._quotas.values() if quota.downstreams)}
        return {name for name in known if downstream in self.downstreams(name)}

    def _see_accounts(self) -> None:
        with_accounts = {downstream for downstream, tenant in self._adaptive if tenant}
        self._calling_accounts = frozenset([name for each in with_accounts for name in self.callers(each)])

    def downstreams(self, function: str) -> tuple[str, ...]:
        """The downstreams that a function calls: those that it declares, and those that its quota names."""
        quota = self._quotas.get((function, "", "", "", ""))
        return tuple(dict.fromkeys((*self._declared.get(function, ()), *(quota.downstreams if quota else ()))))

    def resolve(self, kind: Kind, now: float) -> tuple[Limit, ...]:
        """The limits that each item of a kind pays."""
        return self.paid(kind, now).limits

    def paid(self, kind: Kind, now: float) -> _Paid:
        """The limits that each item of a kind pays, and the weight of its tenant."""
        function, tenant = kind.function, kind.tenant
        known = self._functions.get(function)
        if known is None:
            known = self._functions[function] = self._of_function(function, now)
        shared = known.tenants.get(tenant)
        if shared is None:
            shared = known.tenants[tenant] = self._of_tenant(("", *known.calls), tenant, now)
        limits, weight, own = shared
        limits = known.limits + limits
        if known.own_tenants:
            here = self._of_tenant_in(function, tenant, now)
            limits += here.limits
            if here.weight:
                weight, own = here.weight, True
        if known.collections and kind.collection:
            limits += self._found(((function, kind.collection, "", "", ""),), now)
        return _Paid(limits, weight or 1.0, own)

    @property
    def remembered(self) -> int:
        """Number of tenants whose limits are remembered."""
        return sum([len(tenants) for tenants in self._tenants.values()])

    def idle(self, now: float) -> Set[Limit]:
        """The limits of tenants that are as good as new, of the quotas that have as many as they may."""
        shared = [self._shared[key] for key in self.crowded if key in self._shared]
        values = chain.from_iterable([self._per.get(key, {}).values() for key in self.crowded])
        return {limit for limit in chain(shared, values) if limit.idle(now)}

    def forget(self, used: Collection[Limit], now: float) -> None:
        """Drops the limits of tenants that nobody uses and that are as good as new."""
        self._tenants.clear()
        self._functions.clear()
        self.crowded = {key for key, sharing in self._sharing.items() if sharing}
        for values in self._per.values():
            for tenant in [tenant for tenant, limit in values.items() if limit not in used and limit.idle(now)]:
                del values[tenant]

    def unshare(self) -> bool:
        """Whether there are places again for tenants that share a limit. All kinds are to be resolved anew then, and
        what is out is counted anew: nobody has its own limit beside what it has of the shared one."""
        found = [key for key, sharing in self._sharing.items() if sharing and self._has_places(key)]
        for key in found:
            self._sharing[key].clear()
        return bool(found)

    def _has_places(self, key: QuotaKey) -> bool:
        return len(self._per.get(key, {})) < (self._quotas[key].max_values or USUAL_VALUES)

    def _of_function(self, function: str, now: float) -> _OfFunction:
        calls = self.downstreams(function)
        keys = [(function, "", "", "", ""), *(("", "", "", name, "") for name in calls)]
        adaptive = [self._adaptive[name, ""] for name in calls if (name, "") in self._adaptive]
        return _OfFunction(
            (*self._found(keys, now), *adaptive),
            self._tenants.setdefault(calls, {}),
            calls,
            function in self._with_tenants,
            function in self._with_collections,
        )

    def _of_tenant(self, downstreams: Iterable[str], tenant: str, now: float) -> _Paid:
        """The limits that a tenant pays for all it uses (of the downstream without a name), and for each of these
        downstreams."""
        limits: list[Limit] = []
        weight = 0.0
        for name in downstreams:
            here = self._of_tenant_in("", tenant, now, name)
            limits += here.limits
            adaptive = self._adaptive.get((name, tenant)) if tenant else None
            if adaptive is None and (not tenant or name in self._full):
                adaptive = self._adaptive.get((name, REST))
            limits += () if adaptive is None else (adaptive,)
            weight = weight or (0.0 if name else here.weight)
        return _Paid(tuple(limits), weight)

    def _of_tenant_in(self, function: str, tenant: str, now: float, downstream: str = "") -> _Paid:
        """The limit that a tenant pays in one dimension: its own, or that of each tenant. Its own weight goes before
        that of each tenant even where it has no limit of its own."""
        one, each = (function, "", tenant, downstream, ""), (function, "", "", downstream, "tenant")
        own, every = self._quotas.get(one) if tenant else None, self._quotas.get(each)
        limit = None
        if own is not None:
            limit = self._limit(one, now)
        elif every is not None:
            limit = self._value(each, tenant, now)
        weight = (own.weight if own is not None else 0.0) or (every.weight if every is not None else 0.0)
        return _Paid(() if limit is None else (limit,), weight)

    def _found(self, keys: Iterable[QuotaKey], now: float) -> tuple[Limit, ...]:
        limits = [self._limit(key, now) for key in keys if key in self._quotas]
        return tuple([limit for limit in limits if limit is not None])

    def _of(self, key: QuotaKey) -> list[Limit]:
        found = [self._limits[key]] if key in self._limits else []
        found += [self._shared[key]] if key in self._shared else []
        return [*found, *self._per.get(key, {}).values()]

    def _limit(self, key: QuotaKey, now: float) -> Limit | None:
        limit, quota = self._limits.get(key), self._quotas[key]
        if limit is None and quota.limits:
            limit = self._limits[key] = self._made(quota.what, quota, now)
        return limit

    def _made(self, name: str, quota: Quota, now: float) -> Limit:
        limit = Limit(name, quota, now, self._version)
        if quota.units:
            limit.units = self._units(name, quota, now, ())
        return limit

    def _units(self, name: str, quota: Quota, now: float, former: Iterable[UnitLimit]) -> tuple[UnitLimit, ...]:
        """The unit limits of a quota; former ones go on."""
        known = {limit.unit: limit for limit in former}
        found = []
        for rate in quota.units:
            limit = known.get(rate.unit)
            if limit is None:
                limit = UnitLimit(name, quota.downstream, rate, now, self._version)
            else:
                limit.renew(rate, now, self._version)
            found.append(limit)
        return tuple(found)

    def _value(self, key: QuotaKey, tenant: str, now: float) -> Limit | None:
        quota = self._quotas[key]
        if not quota.limits:
            return None
        values, most = self._per.setdefault(key, {}), quota.max_values or USUAL_VALUES
        limit, shared, sharing = values.get(tenant), self._shared.get(key), self._sharing.setdefault(key, set())
        if limit is not None:
            return limit
        if len(values) >= most - 1:
            self.crowded.add(key)
        if sharing and (shared is None or shared.idle(now)):
            sharing.clear()
        if tenant and tenant not in sharing and len(sharing) < most and len(values) < most:
            what = quota.what.replace("each tenant", f"tenant {tenant}")
            values[tenant] = limit = self._made(what, quota, now)
            return limit
        if tenant and len(sharing) < most:
            sharing.add(tenant)
        if shared is None:
            what = quota.what.replace("each tenant", "tenants beyond max_values, and none")
            shared = self._shared[key] = self._made(what, quota, now)
        return shared
