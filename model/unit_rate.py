"""Unit rate: how much of a unit of one's own (tokens, rows, bytes) may be used a second, with a burst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .name import EXPECTED, NAME_LENGTH, is_name

#: Units with a rate that one quota may have, and units that one item or one run may speak of.
MOST_UNITS, MOST_SAID = 8, 16
#: The most that one item may be estimated to use, or one run may say that it used, of one unit.
MOST_USED = 1e12
#: The most of a unit that a rate, a burst or an estimate may be.
HIGHEST_RATE = 1e12
#: Characters of a number in a header or a field.
LONGEST_NUMBER = 40
#: Use that is assumed of an item of which nothing is known.
USUAL_ESTIMATE = 1.0


@dataclass(frozen=True, slots=True)
class UnitRate:
    """One rate in a unit. A burst of 0 means the rate (at least 1), an estimate of 0 means 1.

    unit      its name, as functions and tailers say it
    rate      so much of it a second
    burst     so much of it at once after a quiet time
    estimate  what an item is taken to use that brings no estimate while nothing is known of its function
    """

    unit: str
    rate: float
    burst: float = 0.0
    estimate: float = 0.0

    def fault(self) -> str:
        """The fault in this rate as a sentence; empty: there is none."""
        if not is_name(self.unit):
            return f"unit {self.unit[:NAME_LENGTH]!r} is not a name: {EXPECTED}"
        for what in ("rate", "burst", "estimate"):
            value = getattr(self, what)
            if not (math.isfinite(value) and 0 <= value <= HIGHEST_RATE):
                return f"{what} of {self.unit} is {value}: expected 0 to {HIGHEST_RATE:g}"
        if not self.rate:
            return f"{self.unit} has no rate: give one above 0, or leave the unit out"
        return ""

    @property
    def said(self) -> str:
        """All of it, for people."""
        more = [f"burst {self.burst:.10g}"] if self.burst else []
        more += [f"estimate {self.estimate:.10g}"] if self.estimate else []
        return f"{self.unit} {self.rate:.10g}/s" + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True, slots=True)
class UnitSource:
    """Source of an item's estimate: a header of it, a field of its payload (JSON; names with dots between
    them), else `amount` (None: nothing is known)."""

    unit: str
    amount: float | None = None
    header: str = ""
    field: str = ""

    def fault(self) -> str:
        """The fault in this source as a sentence; empty: there is none."""
        if not is_name(self.unit):
            return f"unit {self.unit[:NAME_LENGTH]!r} is not a name: {EXPECTED}"
        if self.header and self.field:
            return f"{self.unit} is in a header and in a field: give one of them"
        if self.amount is not None and amount_of(self.amount) is None:
            return f"{self.unit} is {self.amount}: expected 0 to {MOST_USED:g}"
        if self.amount is None and not (self.header or self.field):
            return f"{self.unit} says nothing: give a number, a header or a field"
        return ""


def amount_of(value: Any) -> float | None:
    """An amount as a record says it, a number or its text; None: it is none."""
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST_USED else None


def sources_from_dicts(data: Iterable[Mapping[str, Any]]) -> tuple[UnitSource, ...]:
    """Sources of estimates from plain data; what a later version says beside them is left out."""
    return tuple(
        [UnitSource(**{name: value for name, value in each.items() if name in UnitSource.__slots__}) for each in data]
    )


def fault_of_units(units: tuple[UnitRate, ...]) -> str:
    """The fault in the unit rates of one quota as a sentence; empty: there is none."""
    if len(units) > MOST_UNITS:
        return f"{len(units)} units: at most {MOST_UNITS} are taken"
    seen = set()
    for each in units:
        if fault := each.fault():
            return fault
        if each.unit in seen:
            return f"{each.unit} has two rates: give one"
        seen.add(each.unit)
    return ""


def unit_rate_to_dict(rate: UnitRate) -> dict[str, Any]:
    """Plain data for JSON."""
    return asdict(rate)


def unit_rate_from_dict(data: Mapping[str, Any]) -> UnitRate:
    """The inverse of `unit_rate_to_dict`; what a later version says beside it is left out."""
    return UnitRate(**{name: value for name, value in data.items() if name in UnitRate.__slots__})
