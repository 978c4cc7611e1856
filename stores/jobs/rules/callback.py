"""The callback of a tree: what its function, or its URL, is told once the tree is over."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .ending import state_of

#: The function whose items are requests over HTTP; gateways send them.
CALLBACK = "tailrace.callback"

_encode = msgspec.json.Encoder().encode


class TreeEnd(NamedTuple):
    """The end of a tree: its id and type, the state in which it was to end before its time (empty: it was not to), how
    its items ended, why, and when (wall clock seconds)."""

    id: str
    type: str
    ending: str
    succeeded: int
    failed: int
    why: str
    at: float


def event_of(end: TreeEnd) -> bytes:
    """The event. Its id is the same whenever it is told again."""
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
