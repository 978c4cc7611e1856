"""The callback of a tree: the event that tells a function, or a URL, that the tree is over."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .ending import state_of

#: The function whose items are HTTP requests; gateways send them.
CALLBACK = "tailrace.callback"

_encode = msgspec.json.Encoder().encode


class TreeEnd(NamedTuple):
    """The end of a tree: its id and type, the state in which it ended early (empty: it did not), the number of its
    items by how they ended, the reason, and the time (wall clock seconds)."""

    id: str
    type: str
    ending: str
    succeeded: int
    failed: int
    why: str
    at: float


def event_of(end: TreeEnd) -> bytes:
    """The event as JSON. A repeated event has the same id."""
    return _encode(
        {
            "id": f"{end.id}:done",
            "job": end.id,
            "type": end.type,
            "state": state_of(end.ending, False, True).value,
            "succeeded": end.succeeded,
            "failed": end.failed,
            "why": end.why,
            "at": end.at,
        }
    )
