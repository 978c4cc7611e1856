"""Estimates of the units with a rate of their own (tokens, rows, bytes) that items use, added to items when a tailer
hands them out: from a header, a field of the payload, or a number.

The tailer's file goes before the function's declaration. A value that cannot be read counts as no estimate: then the
scheduler takes the average use of the function's runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...model.function_spec import FunctionSpec
from ...model.unit_rate import UnitSource, amount_of
from ...model.workload import Extra, Flight
from ..rules.urgency import value_at
from .fields import fields_of

#: The extra of most items.
_NO_EXTRA = Extra()


def put_estimates(
    flight: Flight,
    own: Sequence[UnitSource],
    functions: Mapping[str, FunctionSpec],
    estimating: Collection[str],
) -> None:
    """Adds estimates to the items of a flight. `own` is from the tailer's file, `estimating` names the functions that
    declare estimates; without either no item is looked at."""
    if not own and not estimating:
        return
    by_function = {kind.function: _sources(kind.function, own, functions, estimating) for kind in set(flight.kinds)}
    for index, kind in enumerate(flight.kinds):
        if sources := by_function[kind.function]:
            extra = flight.extras.get(index, _NO_EXTRA)
            if units := _estimates(sources, extra, flight.payloads[index]):
                flight.extras.setdefault(index, Extra()).units = units


def _sources(
    function: str, own: Sequence[UnitSource], functions: Mapping[str, FunctionSpec], estimating: Collection[str]
) -> list[UnitSource]:
    theirs = functions[function].units if function in estimating and function in functions else ()
    return [*{source.unit: source for source in (*theirs, *own)}.values()]


def _estimates(sources: Sequence[UnitSource], extra: Extra, payload: bytes) -> tuple[tuple[str, float], ...]:
    headers = dict(extra.headers) if extra.headers else {}
    fields = fields_of(payload) if any(source.field for source in sources) else None
    found = []
    for source in sources:
        said: Any = None
        if source.header:
            said = headers.get(source.header)
        elif source.field:
            said = value_at(fields, source.field.split("."))
        amount = amount_of(said)
        if amount is None:
            amount = source.amount
        if amount is not None:
            found.append((source.unit, amount))
    return tuple(found)
