"""Quotas, the limits that operators set, and the snapshots that watchers get of them and of gates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .adaptive import Adaptive, adaptive_from_dict, adaptive_to_dict
from .function_spec import MOST_DOWNSTREAMS, FunctionSpec
from .gate import Gate
from .name import EXPECTED, NAME_LENGTH, is_name
from .priority import Priority
from .token import Token
from .unit_rate import UnitRate, fault_of_units, unit_rate_from_dict, unit_rate_to_dict

#: The highest number that a quota may have.
HIGHEST_LIMIT = 1e9
#: Values that a quota `per: tenant` counts apart when it does not say how many, and at most.
USUAL_VALUES, MOST_VALUES = 10_000, 1_000_000
#: The dimension of which a quota may set one limit for each value.
PER = ("tenant",)
#: Quotas in all, and versions of them that are kept.
MOST_QUOTAS, KEPT_CHANGES = 100_000, 100


#: Fields that name the subject of a quota: function, collection, tenant, downstream, per.
QuotaKey = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one value of a dimension: a function, a collection of it, a tenant, a downstream, a function's or
    a downstream's tenant. 0 means no limit, a burst of 0 means the rate (at least 1), a weight of 0 means 1.

    per          `tenant`: one such limit for each tenant that has no quota of its own
    max_values   how many tenants of that are counted apart; the rest and the empty label share one. 0: 10,000
    downstreams  what this function calls, beside what it declares itself
    reserve      slot-seconds a minute that it is sure of, before all others (600: ten slots all the time); of a
                 function, a tenant, or a function's tenant. 0: none
    lend         whether others may have what is not used of the reserve
    opportunistic  this function runs only in what all others leave idle
    highest      the highest priority that may be asked for, of a function, a tenant or a function's tenant; empty: any
    adaptive     how the limit of this downstream adapts; None: as usual
    units        rates in units of one's own, beside that in items
    """

    function: str = ""
    concurrency: int = 0
    rate: float = 0.0
    burst: float = 0.0
    weight: float = 0.0
    collection: str = ""
    tenant: str = ""
    downstream: str = ""
    per: str = ""
    max_values: int = 0
    downstreams: tuple[str, ...] = ()
    reserve: float = 0.0
    lend: bool = True
    opportunistic: bool = False
    adaptive: Adaptive | None = None
    highest: str = ""
    units: tuple[UnitRate, ...] = ()

    @property
    def limits(self) -> bool:
        """Whether it limits anything by a number of its own."""
        return bool(self.concurrency or self.rate or self.units)

    @property
    def key(self) -> QuotaKey:
        """The subject that the quota limits, as a tuple; a subject has one quota at most."""
        return (self.function, self.collection, self.tenant, self.downstream, self.per)

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        limited = self.limits or self.adaptive or self.highest
        return not (limited or self.weight or self.downstreams or self.reserve or self.opportunistic)

    @property
    def only_asks(self) -> bool:
        """Whether it only says which priority may be asked for, and limits no runs."""
        return bool(self.highest) and replace(self, highest="").empty

    @property
    def what(self) -> str:
        """The subject that the quota limits, for people."""
        named = [f"{name} {getattr(self, name)}" for name in NAMED if getattr(self, name)]
        return " × ".join(named + ([f"each {self.per}"] if self.per else [])) or "quota without a name"

    def fault(self) -> str:
        """The fault in this quota as a sentence; empty: there is none."""
        return self._fault_of_names() or self._fault_of_numbers()

    def _fault_of_names(self) -> str:  # noqa: PLR0911 - one return per fault
        for what in NAMED:
            name = getattr(self, what)
            if name and not is_name(name):
                return f"{what} {name[:NAME_LENGTH]!r} is not a name: {EXPECTED}"
        if self.per and self.per not in PER:
            return f"per is {self.per[:NAME_LENGTH]!r}: expected {' or '.join(PER)}"
        if self.per and self.tenant:
            return "`tenant` and `per: tenant` are both given: give one of them"
        if self.collection and not self.function:
            return "`collection` is given without `function`: a collection is part of a function"
        if self.downstream and self.function:
            return "a limit is of a function or of a downstream, not of both: give two quotas"
        if self.collection and (self.tenant or self.per):
            return "a limit is of a collection or of a tenant, not of both: give two quotas"
        if not any(self.key):
            return "nobody pays it: give a function, a tenant or a downstream, or per: tenant"
        return ""

    def _fault_of_numbers(self) -> str:  # noqa: PLR0911 - one return per fault
        for what in ("concurrency", "rate", "burst", "weight", "reserve"):
            value = getattr(self, what)
            if not (math.isfinite(value) and 0 <= value <= HIGHEST_LIMIT):
                return f"{what} is {value}: expected 0 (no limit) to {HIGHEST_LIMIT:g}"
        if self.burst and not self.rate:
            return f"burst is {self.burst:g} but there is no rate: give both or neither"
        if self.weight and (self.collection or self.downstream):
            return "a weight is of a function or a tenant: collections and downstreams take no turns"
        if fault := self._fault_of_reserve():
            return fault
        if self.max_values and not self.per:
            return f"max_values is {self.max_values} but it is not per tenant"
        if not 0 <= self.max_values <= MOST_VALUES:
            return f"max_values is {self.max_values}: expected 1 to {MOST_VALUES:,}"
        if self.adaptive is not None and (not self.downstream or self.tenant or self.per):
            return "only a quota of a whole downstream says how its limit adapts"
        fault = self._fault_of_highest() or self._fault_of_calls() or fault_of_units(self.units)
        return fault or (self.adaptive.fault() if self.adaptive is not None else "")

    def _fault_of_highest(self) -> str:
        if self.highest and (self.collection or self.downstream):
            return "a highest priority is of a function, a tenant, or a function's tenant"
        known = [level.label for level in Priority]
        if self.highest and self.highest not in known:
            return f"highest is {self.highest[:NAME_LENGTH]!r}: expected one of {', '.join(known)}"
        return ""

    def _fault_of_calls(self) -> str:
        if self.downstreams and (not self.function or any(self.key[1:])):
            return "only a quota of a whole function says which downstreams it calls"
        if len(self.downstreams) > MOST_DOWNSTREAMS:
            return f"{len(self.downstreams)} downstreams: at most {MOST_DOWNSTREAMS} are taken"
        for name in self.downstreams:
            if not is_name(name):
                return f"downstream {name[:NAME_LENGTH]!r} is not a name: {EXPECTED}"
        return ""

    def _fault_of_reserve(self) -> str:
        if self.reserve and (self.collection or self.downstream or self.per):
            return "a reserve is of a function, a tenant, or a function's tenant"
        if not self.lend and not self.reserve:
            return "lend is false but there is no reserve: give both or neither"
        if self.opportunistic and (not self.function or any(self.key[1:])):
            return "only a whole function is opportunistic"
        if self.opportunistic and self.reserve:
            return "opportunistic (only idle slots) and reserve (sure slots) exclude each other: give one of them"
        return ""


#: The fields of a quota that name what it is of.
NAMED = ("function", "collection", "tenant", "downstream")


def quota_to_dict(quota: Quota) -> dict[str, Any]:
    """Plain data for JSON: the fields that are set, and nothing that the quota leaves open."""
    found = {name: getattr(quota, name) for name in Quota.__slots__}
    usual = {name: value for name, value in found.items() if value and name != "lend"}
    data = {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}
    data |= {} if quota.adaptive is None else {"adaptive": adaptive_to_dict(quota.adaptive)}
    data |= {"units": [unit_rate_to_dict(each) for each in quota.units]} if quota.units else {}
    return data if quota.lend else data | {"lend": False}


def quota_from_dict(data: Mapping[str, Any]) -> Quota:
    """The inverse of `quota_to_dict`; what a later version says beside it is left out."""
    known = {name: value for name, value in data.items() if name in Quota.__slots__}
    adaptive = known.get("adaptive")
    units = tuple([unit_rate_from_dict(each) for each in known.get("units", ())])
    rest = {"downstreams": tuple(known.get("downstreams", ())), "units": units}
    return Quota(**(known | rest | {"adaptive": adaptive_from_dict(adaptive) if adaptive else None}))


def quotas_to_text(quotas: Iterable[Quota]) -> str:
    """Quotas as they rest in a control store: in the order of their keys."""
    return json.dumps([quota_to_dict(quota) for quota in sorted(quotas, key=lambda each: each.key)])


def quotas_from_text(text: str | bytes) -> list[Quota]:
    """The inverse of `quotas_to_text`."""
    return [quota_from_dict(data) for data in json.loads(text)]


@dataclass(slots=True)
class Snapshot:
    """Gates, quotas, the function registry and tokens, whole, at one version. `quotas_version` is the version that made
    the quotas what they are; 0: they were never set. Of tokens there are only hashes."""

    version: int = 0
    gates: list[Gate] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    functions: list[FunctionSpec] = field(default_factory=list)
    quotas_version: int = 0
    tokens: list[Token] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One version of all quotas together: who made it, why and when (wall clock), and what they are since."""

    version: int
    who: str
    why: str
    at: float
    quotas: tuple[Quota, ...] = ()
