"""Estimates: units that items are assumed to use while nobody knows, and that their runs reported instead (FL20).

An item's own estimate goes first (its tailer put it beside it), then the average use of its function's runs, then the
estimate of the quota.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...model.unit_rate import MOST_USED
from ...model.workload import Extra
from .flow import EXTRA, Flow, Item
from .unit_limit import Averages, UnitLimit

#: Use that a run reported: downstream, unit, how much.
Used = tuple[tuple[str, str, float], ...]
#: The part of the way by which an average moves towards what one run used.
PACE = 0.1
#: Averages of one function; beyond them all are learnt anew, since quotas named that many units meanwhile.
MOST_AVERAGES = 256


class Charged(Extra):
    """The extra of an item that started, with what it was charged: each limit, its estimate, and what `take` said."""

    __slots__ = ("charged",)

    def __init__(self, extra: Extra | None, charged: Sequence[tuple[UnitLimit, float, int]]) -> None:
        if extra is None:
            super().__init__()
        else:
            super().__init__(*[getattr(extra, name) for name in Extra.__slots__])
        self.charged = charged

    def __bool__(self) -> bool:
        """Whether the worker of the item has to know anything of it."""
        return bool(self.key or self.headers or self.crashes or self.expires_at or self.alone or self.progress)


def usual(flow: Flow) -> list[float]:
    """Amounts that an item without an estimate uses, one for each unit limit of the flow."""
    averages = flow.averages
    return [averages.get((limit.downstream, limit.unit), limit.usual) for limit in flow.measured]


def estimates(flow: Flow, item: Item, others: list[float]) -> list[float]:
    """Amounts that one item is estimated to use, one for each unit limit of the flow; `others` is what `usual` said."""
    extra = item[EXTRA]
    if extra is None or not extra.units:
        return others
    said = {unit: amount for unit, amount in extra.units if 0 <= amount < math.inf}
    return [min(said.get(limit.unit, other), MOST_USED) for limit, other in zip(flow.measured, others, strict=True)]


def needs(flow: Flow, limit: UnitLimit) -> float:
    """The amount that the first item of a flow needs of one of its unit limits."""
    return estimates(flow, flow.items[0], usual(flow))[flow.measured.index(limit)]


def filling(flow: Flow) -> float:
    """Seconds, at most, until there is enough for the first item of a flow, if nobody else takes it."""
    if not (flow.measured and flow.items):
        return 0.0
    amounts = estimates(flow, flow.items[0], usual(flow))
    return max([min(need, limit.burst) / limit.rate for limit, need in zip(flow.measured, amounts, strict=True)])


def sharing(flow: Flow, limit: UnitLimit, part: float) -> tuple[int, float]:
    """Number of the first items of a flow that need at most `part` of a unit limit together, one at least; and how much
    these need."""
    others, index = usual(flow), flow.measured.index(limit)
    count, whole = 0, 0.0
    for item in flow.items:
        amount = estimates(flow, item, others)[index]
        if count and whole + amount > part:
            break
        count, whole = count + 1, whole + amount
    return count, whole


def fitting(flow: Flow, count: int, now: float) -> tuple[int, UnitLimit | None]:
    """Number of the first `count` items that all unit limits have enough for, one after the other, and the limit that
    has not."""
    measured, others = flow.measured, usual(flow)
    held = [limit.holds(now) for limit in measured]
    for number, item in enumerate(flow.items[:count]):
        for index, amount in enumerate(estimates(flow, item, others)):
            if not measured[index].enough(held[index], amount):
                return number, measured[index]
            held[index] -= amount
    return count, None


def charge(flow: Flow, items: list[Item], now: float) -> list[Item]:
    """Charges items that start; they carry their charges."""
    others = usual(flow)
    return [
        (
            *item[:EXTRA],
            Charged(
                item[EXTRA],
                [
                    (limit, amount, limit.take(amount, now))
                    for limit, amount in zip(flow.measured, estimates(flow, item, others), strict=True)
                ],
            ),
            *item[EXTRA + 1 :],
        )
        for item in items
    ]


def used_of(limit: UnitLimit, used: Iterable[tuple[str, str, float]]) -> float | None:
    """The amount that a run reported of the unit that a limit counts: at its downstream, or at all together; None:
    nothing."""
    said = [
        amount
        for of, unit, amount in used
        if unit == limit.unit and (not limit.downstream or of == limit.downstream) and 0 <= amount < math.inf
    ]
    return min(sum(said), MOST_USED) if said else None


def learn(averages: Averages, limit: UnitLimit, used: float) -> None:
    """Learns from one more run how much it used."""
    key = (limit.downstream, limit.unit)
    known = averages.get(key)
    if known is None and len(averages) >= MOST_AVERAGES:
        averages.clear()
    averages[key] = used if known is None else known + PACE * (used - known)
