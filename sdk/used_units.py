"""Amounts of units that a run reports as used, by downstream and unit, checked when they are reported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import Lock
from typing import Any

from ..model.errors import InvalidRequest
from ..model.name import EXPECTED, NAME_LENGTH, is_name
from ..model.plain_text import plain
from ..model.unit_rate import MOST_SAID, MOST_USED

#: Sums by (downstream, unit).
Sums = dict[tuple[str, str], float]
_LOCK = Lock()


def add_used(sums: Sums, downstream: Any, units: Mapping[str, Any]) -> None:
    """Adds the amounts of one report to a run's sums, all or none. Raises InvalidRequest for a wrong name or amount."""
    of = _name("downstream", downstream) if downstream != "" else ""
    if not units:
        raise InvalidRequest('name a unit and how much of it was used, such as ctx.used("openai", tokens=812)')
    said = {(of, _name("unit", unit)): _amount(unit, amount) for unit, amount in units.items()}
    with _LOCK:
        if len(sums.keys() | said.keys()) > MOST_SAID:
            raise InvalidRequest(f"a run may report at most {MOST_SAID} amounts, by unit and downstream")
        for key, amount in said.items():
            sums[key] = min(sums.get(key, 0.0) + amount, MOST_USED)


def told(sums: Sums) -> tuple[tuple[str, str, float], ...]:
    """The sums as they travel: downstream, unit, amount."""
    with _LOCK:
        return tuple([(of, unit, amount) for (of, unit), amount in sums.items()])


def _name(what: str, name: Any) -> str:
    """A name as plain text, whatever subclass of str it is. Raises InvalidRequest."""
    text = plain(name, NAME_LENGTH + 1) if issubclass(type(name), str) else ""
    if not is_name(text):
        shown = plain(name, 100) if issubclass(type(name), str) else f"a {type(name).__name__}"
        raise InvalidRequest(f"{what} {shown!r} is not a name: {EXPECTED}")
    return text


def _amount(unit: str, amount: Any) -> float:
    """An amount as a float; NumPy's numbers and the like are converted. Raises InvalidRequest."""
    kind = type(amount)
    try:
        if issubclass(kind, bool | str | bytes | bytearray) or not hasattr(kind, "__float__"):
            raise TypeError
        value = float(float(amount))
    except OverflowError:
        value = math.inf
    except Exception:
        raise InvalidRequest(
            f"{plain(unit, NAME_LENGTH)} is {plain(kind.__name__, 100)}, not a number: expected how much was used"
        ) from None
    if not (math.isfinite(value) and 0 <= value <= MOST_USED):
        raise InvalidRequest(f"{plain(unit, NAME_LENGTH)} is {value}: expected how much was used, 0 to {MOST_USED:g}")
    return value
