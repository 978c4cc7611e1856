"""Usage: the slot-time of each function and tenant, by the hour."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import NamedTuple

#: Seconds of an hour, and how many hours are kept.
HOUR, KEPT_HOURS = 3600, 720
#: Kinds that are counted apart in an hour; beyond them what is new is summed by its function, for so many functions;
#: beyond those in one sum, and one for each unit of one's own.
MOST_KINDS, MOST_FUNCTIONS = 10_000, 1_000
#: Rows of one report, at most: a store is busy with it for some milliseconds.
REPORT_ROWS = 1_000
#: The tenant, or the function too, of such a sum. No name begins so.
OTHERS = "(others)"
#: Between the downstreams of a function, in one text; and between a downstream and a unit of one's own.
JOINED, UNIT = ",", "#"
#: Kinds of which units are counted apart between two reports; beyond them by function and unit, for as many. Names of
#: units that one scheduler tells apart; others are one.
MOST_UNIT_KINDS, MOST_UNIT_NAMES = 2_000, 100


class UsageKind(NamedTuple):
    """A kind of use. `hour` is counted from 1970; `downstreams` are those that the function called then, joined; or, of
    a unit of one's own, the downstream and the unit (`of_unit`)."""

    hour: int
    function: str
    tenant: str = ""
    downstreams: str = ""


class UsageRow(NamedTuple):
    """One kind's use: runs that ended, and slot-time in microseconds, also of those that had not ended yet. Of a unit:
    no runs, and `micros` is how much of it was used."""

    hour: int
    function: str
    tenant: str
    downstreams: str
    items: int
    micros: int

    @property
    def kind(self) -> UsageKind:
        """The kind of use that the row counts."""
        return UsageKind(*self[:4])


class UsageReport(NamedTuple):
    """Report of what a scheduler counted since the one before. `scheduler` names one life of it, `number` rises with
    each report: one that was kept already is not counted again."""

    scheduler: str
    number: int
    rows: list[UsageRow]


def of_unit(downstream: str, unit: str) -> str:
    """The text that stands in a kind's `downstreams` where the use of a unit at a downstream is counted."""
    return f"{downstream}{UNIT}{unit}"


def unit_of(downstreams: str) -> tuple[str, str]:
    """The inverse of `of_unit`: downstream and unit; the unit of anything else is empty."""
    downstream, _, unit = downstreams.partition(UNIT)
    return downstream, unit


def beyond(downstreams: str) -> str:
    """The `downstreams` of the last sum of an hour: the unit alone, which is not summed with anything else; empty: no
    unit."""
    _, unit = unit_of(downstreams)
    return of_unit("", unit) if unit else ""


def counted_as(kind: UsageKind, known: Container[UsageKind], kinds: int) -> UsageKind:
    """The kind under which a use is counted when so many kinds are known: itself, or a sum over tenants or
    functions."""
    if kind in known or kinds < MOST_KINDS:
        return kind
    of_function = kind._replace(tenant=OTHERS)
    if of_function in known or kinds < MOST_KINDS + MOST_FUNCTIONS:
        return of_function
    return UsageKind(kind.hour, OTHERS, OTHERS, beyond(kind.downstreams))


class UsageSum(NamedTuple):
    """A sum over rows; columns that were not asked for are empty. With a unit `micros` is how much of it was used."""

    hour: int
    function: str
    tenant: str
    downstream: str
    items: int
    micros: int
    unit: str = ""


#: The columns by which use is summed.
COLUMNS = ("hour", "function", "tenant", "downstream")


def summed(sums: Iterable[UsageSum]) -> list[UsageSum]:
    """Sums of alike ones as one, in the order of their columns."""
    found: dict[tuple[tuple[int, str, str, str], str], tuple[int, int]] = {}
    for each in sums:
        items, micros = found.get((each[:4], each.unit), (0, 0))
        found[each[:4], each.unit] = (items + each.items, micros + each.micros)
    return [UsageSum(*kind, *numbers, unit) for (kind, unit), numbers in sorted(found.items())]


def sums_of(rows: Iterable[UsageRow], by: Collection[str], of: UsageKind) -> list[UsageSum]:
    """Rows as sums by some columns, of one function, tenant or downstream, or of all (""). A function that calls
    several downstreams is counted at each of them where they are asked for."""
    found = []
    for row in rows:
        downstreams, unit = unit_of(row.downstreams)
        called = downstreams.split(JOINED)
        if (of.function and row.function != of.function) or (of.tenant and row.tenant != of.tenant):
            continue
        if of.downstreams and of.downstreams not in called:
            continue
        called = [of.downstreams] if of.downstreams else called
        for downstream in called if "downstream" in by else [""]:
            columns = (
                row.hour if "hour" in by else 0,
                row.function if "function" in by else "",
                row.tenant if "tenant" in by else "",
                downstream,
            )
            found.append(UsageSum(*columns, row.items, row.micros, unit))
    return summed(found)
