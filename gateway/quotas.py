"""`quotas.yaml`: the limits of functions, tenants and downstreams, applied when the gateway starts.

    functions:
      send_email: {concurrency: 50, rate: 100, burst: 200, weight: 2, downstreams: [smtp]}
    quotas:
      - {function: send_email, collection: newsletter, rate: 10}
      - {tenant: acme, concurrency: 20, weight: 4}
      - {per: tenant, concurrency: 5}
      - {downstream: smtp, concurrency: 30, rate: 90}
      - {downstream: stripe, adaptive: {floor: 5, ceiling: 400}}
      - {downstream: smtp, per: tenant, rate: 20, max_values: 5000}
      - {downstream: openai, rate: 500/min, units: {tokens: 90000/min}}

Functions, tenants and downstreams named here get exactly these limits at each start; others keep those of `tailrace
quota set`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ..foundation.config import Seconds
from ..model.adaptive import USUAL, Adaptive
from ..model.errors import InvalidRequest
from ..model.limits import HIGHEST_LIMIT, Quota
from ..model.unit_rate import HIGHEST_RATE, UnitRate
from ..model.units import per_second

Limit = Annotated[float, Field(ge=0, le=HIGHEST_LIMIT, allow_inf_nan=False)]
UnitAmount = Annotated[float, Field(ge=0, le=HIGHEST_RATE, allow_inf_nan=False)]


def _per_second(value: Any) -> float:
    try:
        return per_second(value)
    except InvalidRequest as error:
        raise PydanticCustomError("rate", "{reason}", {"reason": str(error)}) from None


#: A rate in a model: so many a second, or text like "500/min".
Rate = Annotated[
    float,
    Field(le=HIGHEST_RATE),
    BeforeValidator(_per_second),
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"type": "string"}], "description": 'so many a second, or text like "500/min"'}
    ),
]


class UnitRateConfig(BaseModel):
    """A rate in a unit of one's own, such as tokens.

    rate      amount per second, or text like "90000/min"
    burst     amount at once after a quiet time (default: the rate, at least 1)
    estimate  assumed use of an item without an estimate of its own, while nothing is known of its function (default 1)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: Rate
    burst: UnitAmount = 0.0
    estimate: UnitAmount = 0.0


#: The rates of a quota by unit: the rate alone, or all of it.
UnitRates = dict[
    str,
    Annotated[
        Annotated[Rate, Tag("rate")] | Annotated[UnitRateConfig, Tag("whole")],
        Discriminator(lambda value: "whole" if isinstance(value, dict | UnitRateConfig) else "rate"),
    ],
]


def _units(rates: UnitRates) -> tuple[UnitRate, ...]:
    """The rates as a quota has them, by unit."""
    return tuple(
        [
            UnitRate(unit, each.rate, each.burst, each.estimate)
            if isinstance(each, UnitRateConfig)
            else UnitRate(unit, each)
            for unit, each in sorted(rates.items())
        ]
    )


class FunctionQuota(BaseModel):
    """Limits of one function; a limit that is left out is no limit.

    concurrency  runs at once
    rate         starts per second; burst: how many of them at once after a quiet time (default: the rate, at least 1)
    weight       its share when functions compete (default 1)
    downstreams  downstreams that it calls, beside those that it declares itself
    reserve      guaranteed slot-seconds a minute (600: ten slots all the time)
    lend         whether others may use the unused part of the reserve (default: yes)
    opportunistic  whether it runs only in slots that all others leave idle
    units        rates in units of one's own, such as {tokens: 90000/min}
    highest      the highest priority that its workloads may be submitted with
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int = Field(default=0, ge=0, le=int(HIGHEST_LIMIT))
    rate: Rate = 0.0
    burst: Limit = 0.0
    weight: Limit = 0.0
    downstreams: tuple[str, ...] = ()
    reserve: Limit = 0.0
    lend: bool = True
    opportunistic: bool = False
    units: UnitRates = Field(default_factory=dict)
    highest: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> FunctionQuota:
        if fault := self.quota("a").fault():
            raise ValueError(fault)
        return self

    def quota(self, function: str) -> Quota:
        """The limits as a Quota of this function."""
        return Quota(function, **(dict(self) | {"units": _units(self.units)}))


class AdaptiveConfig(BaseModel):
    """Numbers of an adaptive limit (AIMD) of a downstream, which holds from the first time that the downstream
    throttles.

    on            whether the limit adapts
    floor, ceiling  starts a second within which the limit stays; a ceiling of 0: none
    increase      the share of itself by which the limit grows in a second while it is used
    decrease      the factor by which the limit shrinks, at most, when the downstream throttles
    slow_start    seconds in which the limit rises again after the downstream was closed (circuit breaker)
    probe_timeout  seconds after which a probe that has not ended counts as failed
    retries       retries of a function that calls it, as a share of its first attempts; one a second may always go
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    on: bool = True
    floor: float = USUAL.floor
    ceiling: float = USUAL.ceiling
    increase: float = USUAL.increase
    decrease: float = USUAL.decrease
    slow_start: Seconds = USUAL.slow_start
    probe_timeout: Seconds = USUAL.probe_timeout
    retries: float = USUAL.retries

    @model_validator(mode="after")
    def _fits_together(self) -> AdaptiveConfig:
        if fault := self.numbers().fault():
            raise ValueError(fault)
        return self

    def numbers(self) -> Adaptive:
        """The numbers as a quota has them."""
        return Adaptive(**dict(self))


class QuotaEntry(BaseModel):
    """Limits of a collection, a tenant, a downstream, or of one tenant of a function or a downstream.

    function, collection, tenant, downstream  the subject of the limits: one of these, function and collection, or a
                                              tenant with a function or a downstream
    per          tenant: the same limits for each tenant that has no entry of its own
    max_values   tenants of such an entry that are counted apart; all others and the empty label share one limit
                 (default 10,000)
    concurrency, rate, burst   as for a function
    weight       the tenant's share when tenants compete, over all functions, or in the function that is named
    reserve, lend   as for a function; for a tenant, or a tenant of a function
    adaptive     numbers by which the limit of a downstream adapts when that throttles
    units        as for a function
    highest      as for a function; for a tenant, or a tenant of a function
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: str = ""
    collection: str = ""
    tenant: str = ""
    downstream: str = ""
    per: str = ""
    max_values: int = 0
    concurrency: int = Field(default=0, ge=0, le=int(HIGHEST_LIMIT))
    rate: Rate = 0.0
    burst: Limit = 0.0
    weight: Limit = 0.0
    downstreams: tuple[str, ...] = ()
    reserve: Limit = 0.0
    lend: bool = True
    opportunistic: bool = False
    adaptive: AdaptiveConfig | None = None
    units: UnitRates = Field(default_factory=dict)
    highest: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> QuotaEntry:
        quota = self.quota()
        if fault := quota.fault():
            raise ValueError(fault)
        if quota.empty:
            raise ValueError("the quota has no limit: give concurrency, rate, units, weight, adaptive or highest")
        return self

    def quota(self) -> Quota:
        """The entry as a Quota."""
        adaptive = None if self.adaptive is None else self.adaptive.numbers()
        return Quota(**(dict(self) | {"adaptive": adaptive, "units": _units(self.units)}))


class QuotasConfig(BaseModel):
    """Limits, set when the gateway starts; a function, tenant or downstream that is not named is not limited.
    `version`: the version of the quotas that the file was made from; `plan` and `apply` refuse any other. 0: any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(default=0, ge=0)
    functions: dict[str, FunctionQuota] = Field(default_factory=dict)
    quotas: tuple[QuotaEntry, ...] = ()

    @model_validator(mode="after")
    def _once(self) -> QuotasConfig:
        seen = set()
        for quota in self.all():
            if not quota.key[0] and not any(quota.key):
                raise ValueError("a function needs a name")
            if fault := quota.fault():
                raise ValueError(f"{quota.what}: {fault}")
            if quota.key in seen:
                raise ValueError(f"{quota.what} has two entries: keep one")
            seen.add(quota.key)
        return self

    def all(self) -> list[Quota]:
        """All quotas, functions first."""
        named = [limits.quota(name) for name, limits in sorted(self.functions.items())]
        return named + [entry.quota() for entry in self.quotas]
