"""A filter of dead letters as conditions behind WHERE, the same for every engine that speaks SQL.

The letters are `l` there, and `r` is the workload that each was redriven to; columns that only one of the two has need
no name before them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.dead_letter import LetterFilter


class EngineConditions(NamedTuple):
    """Conditions that each engine words in its own way: the ids asked for and a part of the reason, each with its
    value, and letters that are being redriven. `mark` is the engine's placeholder for a value."""

    ids: tuple[str, Any]
    reason: tuple[str, Any]
    moving: str
    mark: str


def condition(which: LetterFilter, own: EngineConditions) -> tuple[str, list[Any]]:
    """The conditions of a filter, each beginning with AND, as they follow WHERE; and their values."""
    wanted: list[tuple[bool, str, tuple[Any, ...]]] = [
        (bool(which.ids), own.ids[0], own.ids[1:]),
        (bool(which.function), "function = ?", (which.function,)),
        (bool(which.tailer), "(l.tailer = ? OR r.tailer = ?)", (which.tailer, which.tailer)),
        (bool(which.collection), "collection = ?", (which.collection,)),
        (bool(which.tenant), "tenant = ?", (which.tenant,)),
        (bool(which.reason), own.reason[0], own.reason[1:]),
        (bool(which.since), "died_at >= ?", (which.since,)),
        (bool(which.until), "died_at < ?", (which.until,)),
        (bool(which.attempts), "attempts >= ?", (which.attempts,)),
        (bool(which.crashes), "crashes >= ?", (which.crashes,)),
        (bool(which.redrives), "redrives >= ?", (which.redrives,)),
        (which.moving, own.moving, ()),
    ]
    chosen = [(text, values) for is_wanted, text, values in wanted if is_wanted]
    text = "".join(f" AND {text}" for text, _ in chosen).replace("?", own.mark)
    return text, [value for _, values in chosen for value in values]
