"""The callback of a workload: the event that tells a function, or a URL, that the workload is over.

The transaction that ends a workload also stores its callback, as a workload of its own. So an end is told at least
once, never too early, and after any restart. An engine that cannot do this refuses callbacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...model.errors import InvalidRequest
from ...model.status import SUCCESS
from .intake import NewItem

_encode = msgspec.json.Encoder().encode


class WorkloadEnd(NamedTuple):
    """The end of a workload: its id and function, the state in which it ended, why (empty: nothing was said), and
    when (wall clock seconds)."""

    id: str
    function: str
    state: str
    why: str
    at: float


def event_of(end: WorkloadEnd) -> bytes:
    """The event as JSON. A repeated event has the same id."""
    return _encode(
        {
            "id": f"{end.id}:done",
            "workload": end.id,
            "function": end.function,
            "state": end.state,
            "why": end.why or ("" if end.state == SUCCESS else end.state),
            "at": end.at,
        }
    )


def refuse_callbacks(items: Sequence[NewItem], where: str) -> None:
    """Raises InvalidRequest if an item has a callback, on an engine (`where`) that has none."""
    if any(item.on_done is not None for item in items):
        raise InvalidRequest(
            f"on_done: {where} sends no callbacks of workloads: use a queue on SQLite or PostgreSQL, or ask for the "
            "result"
        )
