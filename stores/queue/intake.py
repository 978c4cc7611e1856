"""The port for what comes into a queue: new workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.workload import Headers, Kind


class Callback(NamedTuple):
    """The workload that is made once something is over: its kind, and the bytes around the event (`callback.py` here,
    and that of jobs' rules) which make a payload of it."""

    kind: Kind
    prefix: bytes = b""
    suffix: bytes = b""


@dataclass(slots=True)
class NewItem:
    """A workload to be stored. `due` 0 means now; `expires_at` 0 means never; an empty dedupe_key or key means none.
    `on_done`: what its end is told to; one that is a duplicate tells nothing."""

    kind: Kind
    payload: bytes
    due: float = 0.0
    key: str = ""
    headers: Headers = ()
    dedupe_key: str = ""
    expires_at: float = 0.0
    on_done: Callback | None = None


class Submitted(NamedTuple):
    """The id a new item got, or that of the first one with its dedupe key."""

    id: str
    duplicate: bool


class QueueIntake(Protocol):
    """The port to which workloads are submitted."""

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        """Stores all items or none. Raises Overloaded at the configured bound, StoreFull, InvalidRequest."""
