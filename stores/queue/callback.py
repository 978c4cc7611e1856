"""The callback of a workload: what its function, or its URL, is told once the workload is over.

It is made a workload by the transaction that ends the other one, so that it is told at least once, never before the
end, and through every restart; an engine that cannot do that refuses it.
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
    """The event. Its id is the same whenever it is told again."""
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
    """Raises InvalidRequest for items whose ends are to be told, where these cannot be."""
    if any(item.on_done is not None for item in items):
        raise InvalidRequest(
            f"on_done: {where} tells no ends of workloads: use a queue on SQLite or PostgreSQL, or ask for the result"
        )
