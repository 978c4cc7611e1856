"""The port for submissions to a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.workload import Headers, Kind


class Callback(NamedTuple):
    """The workload that is stored once something is over: its kind, and the bytes before and after the event that make
    its payload (`callback.py` here, `jobs/rules/callback.py` for jobs)."""

    kind: Kind
    prefix: bytes = b""
    suffix: bytes = b""


@dataclass(slots=True)
class NewItem:
    """A workload to be stored. `due` 0 means now; `expires_at` 0 means never; an empty dedupe_key or key means none.
    `on_done`: the callback of its end; a duplicate has none."""

    kind: Kind
    payload: bytes
    due: float = 0.0
    key: str = ""
    headers: Headers = ()
    dedupe_key: str = ""
    expires_at: float = 0.0
    on_done: Callback | None = None


class Submitted(NamedTuple):
    """The id of a new item, or of the first item with the same dedupe key."""

    id: str
    duplicate: bool


class QueueIntake(Protocol):
    """The port to which workloads are submitted."""

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        """Stores all items or none. Raises Overloaded at the configured bound, StoreFull, InvalidRequest (for one of
        the platform's own functions too)."""

    async def tell_again(self, items: Sequence[NewItem]) -> list[Submitted]:
        """Stores callbacks that were given up once more, like `submit`; only gateways may. Their first time the store
        makes them itself, of an end. Raises InvalidRequest also on an engine that tells of no ends."""
