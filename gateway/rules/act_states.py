"""The states of an act's subject that the record keeps, before and after: a schedule, workloads, letters, a job, a
replay. Of a payload only size and hash are kept, since records last for a year."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from ...model.errors import InvalidRequest
from ...model.priority import Priority
from ...model.schedule import Schedule, ScheduleRow
from ...model.units import duration_text

#: Fields of a schedule that are moments, and fields that are durations.
_MOMENTS, _SPANS = ("at", "starts", "until", "created_at"), ("every", "grace", "jitter")
#: Fields of a workload's status that are kept.
_OF_WORKLOAD = ("function", "collection", "tenant", "attempts", "created_by")


def schedule_json(schedule: Any) -> str:
    """A schedule, or the message of one, as JSON of which an equal one can be made."""
    return to_json(_schedule(schedule))


def row_json(row: ScheduleRow | None) -> str:
    """A stored schedule as JSON, with its state; empty: there is none."""
    if row is None:
        return ""
    state = "paused" if row.paused else "over" if row.over else "active"
    return to_json({**_schedule(row.schedule), "state": state, "runs": row.runs, "passed_over": row.passed_over})


def _schedule(schedule: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(Schedule):
        value: Any = getattr(schedule, field.name, "")  # a message has fewer
        if field.name == "name" or not value:
            continue
        if field.name in _MOMENTS:
            value = moment(value)
        elif field.name in _SPANS:
            value = _span(value)
        elif field.name == "payload":
            value = {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
        found[field.name] = value
    return found


def workloads_json(statuses: Iterable[Any]) -> str:
    """The known workloads among these as JSON, by id."""
    return to_json({each.id: _workload(each) for each in statuses if each.known})


def _workload(status: Any) -> dict[str, Any]:
    moments = {"created_at": moment(status.created_at), "due_at": moment(status.due_at)}
    rest = {name: getattr(status, name) for name in _OF_WORKLOAD}
    return _without_empty({"state": status.state, "priority": level(status.priority), **moments, **rest})


def letters_json(counts: Any) -> str:
    """Numbers of letters by function, as JSON."""
    return to_json({each.function: each.count for each in counts.counts})


def tree_json(tree: Any) -> str:
    """A tree of jobs as JSON, with the numbers of its items by state."""
    state = {"type": tree.type, "key": tree.key, "state": str(tree.state), "why": tree.why}
    items = {"pending": tree.pending, "succeeded": tree.succeeded, "failed": tree.failed}
    return to_json(
        _without_empty(state) | items | {"created_by": tree.created_by, "created_at": moment(tree.created_at)}
    )


def replay_json(replay: Any) -> str:
    """A replay as JSON, with its progress."""
    names = ("tailer", "state", "items", "counts", "only", "rate", "priority", "who", "why")
    return to_json(_without_empty({name: getattr(replay, name) for name in names}))


def moment(at: float) -> str | float | None:
    """Wall clock seconds as ISO 8601; None for 0; a number beyond the calendar stays a number."""
    if not at:
        return None
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return at


def level(rank: int) -> str | int:
    """The name of a priority; an unknown number stays a number."""
    try:
        return Priority.parse(int(rank)).label
    except InvalidRequest:
        return rank


def to_json(state: dict[str, Any]) -> str:
    """A state as JSON; empty: there is none."""
    return json.dumps(state, ensure_ascii=False, default=str) if state else ""


def _span(seconds: float) -> str | float:
    try:
        return duration_text(seconds)
    except (ValueError, OverflowError):  # no number, or without end
        return seconds


def _without_empty(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if value not in ("", None, 0, {})}
