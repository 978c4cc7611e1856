"""The plan of a change of quotas: its differences from the quotas in force, and warnings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..model.adaptive import USUAL, adaptive_to_dict
from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest
from ..model.function_spec import FunctionSpec
from ..model.limits import MOST_QUOTAS, Quota, QuotaKey

NUMBERS = (
    "concurrency",
    "rate",
    "burst",
    "weight",
    "max_values",
    "downstreams",
    "reserve",
    "lend",
    "opportunistic",
    "highest",
)


class QuotaDifference(NamedTuple):
    """One quota in a change: whose it is, whether it is added, removed or changed, and its numbers before and after."""

    quota: str
    change: str
    before: str
    after: str


def checked_quota(quota: Quota) -> Quota:
    """The quota, checked. Raises InvalidRequest for a wrong one."""
    if fault := quota.fault():
        raise InvalidRequest(f"{quota.what}: {fault}")
    return quota


def check_quotas(quotas: Collection[Quota]) -> None:
    """Raises InvalidRequest for a wrong quota, for two with the same subject, or for too many."""
    if len(quotas) > MOST_QUOTAS:
        raise InvalidRequest(f"{len(quotas)} quotas: at most {MOST_QUOTAS:,} are taken")
    seen = set()
    for quota in quotas:
        if checked_quota(quota).key in seen:
            raise InvalidRequest(f"{quota.what} has two quotas: give one")
        seen.add(quota.key)


def with_changes(quotas: Iterable[Quota], changed: Iterable[Quota]) -> list[Quota]:
    """All quotas after some were set, in the order of their keys; quotas without limits are left out."""
    found = {quota.key: quota for quota in quotas} | {quota.key: quota for quota in changed}
    return [quota for _, quota in sorted(found.items()) if not quota.empty]


def removals(before: Iterable[Quota], now: Iterable[Quota]) -> list[Quota]:
    """Empty quotas, which remove the quotas that a file had before and does not have now."""
    keys = {quota.key for quota in now}
    gone = [each for each in before if each.key not in keys]
    return [
        Quota(each.function, collection=each.collection, tenant=each.tenant, downstream=each.downstream, per=each.per)
        for each in gone
    ]


def numbers(quota: Quota | None) -> str:
    """The limits of a quota in words; empty: no quota."""
    if quota is None:
        return ""
    usual = Quota()
    said = {name: getattr(quota, name) for name in NUMBERS if getattr(quota, name) != getattr(usual, name)}
    parts = [f"{name} {_shown(value)}" for name, value in said.items()]
    parts += [each.said for each in quota.units]
    if (adaptive := quota.adaptive) is not None:
        others = {name: value for name, value in adaptive_to_dict(adaptive).items() if value != getattr(USUAL, name)}
        told = ", ".join(f"{name} {value:g}" for name, value in others.items() if name != "on")
        parts.append(f"adaptive ({told or 'as usual'})" if adaptive.on else "not adaptive")
    return ", ".join(parts)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return ", ".join(value) if isinstance(value, tuple) else f"{value:g}"


def reserved_slots(quotas: Iterable[Quota]) -> float:
    """Number of slots that all reserves together may take at every moment. A tenant's part of a function counts by
    itself: it is due, too, when others have used up the function's and the tenant's reserves."""
    return sum(quota.reserve for quota in quotas) / 60.0


def differences(before: Iterable[Quota], after: Iterable[Quota]) -> list[QuotaDifference]:
    """The differences that a change would make, in the order of the quotas' keys."""
    old, new = ({quota.key: quota for quota in quotas} for quotas in (before, after))
    found = []
    for key in sorted(old.keys() | new.keys()):
        was, will = old.get(key), new.get(key)
        if was != will:
            one = will or was
            assert one is not None
            change = "add" if was is None else "remove" if will is None else "change"
            found.append(QuotaDifference(one.what, change, numbers(was), numbers(will)))
    return found


def warnings(quotas: Collection[Quota], functions: Iterable[FunctionSpec]) -> list[str]:
    """Warnings before these quotas are applied: names that no function or call has, and limits that can never be
    reached because another one is below them."""
    known = {spec.name: spec for spec in functions}
    called = {name for spec in known.values() for name in spec.downstreams}
    called |= {name for quota in quotas for name in quota.downstreams}
    by_key = {quota.key: quota for quota in quotas}
    found = []
    for quota in quotas:
        if quota.function and quota.function not in known:
            hint = meant(quota.function, known, otherwise="a worker that starts later may register it")
            found.append(f"{quota.what}: no worker ever registered {quota.function!r}: {hint}")
        if quota.downstream and quota.downstream not in called:
            hint = meant(quota.downstream, called, otherwise="declare it: @function(downstreams=[…]), or in a quota")
            found.append(f"{quota.what}: no function calls {quota.downstream!r}: {hint}")
        found += _unreachable(quota, by_key)
    return found


def _unreachable(quota: Quota, quotas: Mapping[QuotaKey, Quota]) -> list[str]:
    whole = quotas.get((quota.function, "", "", quota.downstream, ""))
    if whole is None or whole is quota:
        return []
    pairs = [(name, getattr(quota, name), getattr(whole, name)) for name in ("concurrency", "rate")]
    rates = {each.unit: each.rate for each in whole.units}
    pairs += [(f"rate of {each.unit}", each.rate, rates.get(each.unit, 0.0)) for each in quota.units]
    return [
        f"{quota.what}: its {name} {own:g} is above that of {whole.what}, {theirs:g}, "
        "which therefore decides: lower one, or raise the other"
        for name, own, theirs in pairs
        if 0 < theirs < own
    ]
