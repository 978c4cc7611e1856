"""Urgency of a record, by its headers and the fields of its payload: the first rule that it meets says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...model.errors import InvalidRequest
from ...model.priority import Priority


class Condition(NamedTuple):
    """A header, or else a field by its path, and the value that it must have; `allowed` are values as text, None: any.
    Bounds are inclusive, and met by numbers only."""

    header: str
    field: tuple[str, ...]
    allowed: frozenset[str] | None
    least: float | None
    most: float | None
    rank: int


def rank_of(conditions: Iterable[Condition], headers: Mapping[str, str], fields: Any) -> int | None:
    """The rank of the first condition that is met; None: none is. `fields`: the payload as fields, None: it has
    none."""
    for condition in conditions:
        value = headers.get(condition.header) if condition.header else value_at(fields, condition.field)
        if value is not None and _meets(condition, value):
            return condition.rank
    return None


def level_of(value: Any) -> int | None:
    """The rank of a level's name or number; None for anything else."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return int(Priority.parse(value))
        except InvalidRequest:
            return None
    return None


def value_at(fields: Any, path: Iterable[str]) -> Any:
    """The value at a path of names; None when there is none."""
    for name in path:
        if not isinstance(fields, dict):
            return None
        fields = fields.get(name)
    return fields


def text_of(value: Any) -> str | None:
    """A value as rules compare it: 7, 7.0 and "7" are the same, and so are true and "true". None for anything but a
    single value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def _meets(condition: Condition, value: Any) -> bool:
    if condition.allowed is not None and text_of(value) not in condition.allowed:
        return False
    if condition.least is None and condition.most is None:
        return True
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        return False
    return (condition.least is None or number >= condition.least) and (
        condition.most is None or number <= condition.most
    )
