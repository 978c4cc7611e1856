"""The port for one item of a queue at a time: what it holds, and when and how urgently it is to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ...model.workload import Headers

#: A due time that means the store's own now.
NOW: Final = 0.0
#: The highest number of a priority that every engine can index.
HIGHEST = (1 << 31) - 1


class Reschedule(NamedTuple):
    """A change of one item that waits. `due`: wall clock seconds of the store, or NOW, which delays nothing that is
    due already; None: as it is. `priority`: None: as it is."""

    id: str
    due: float | None = None
    priority: int | None = None


@dataclass(slots=True)
class ItemContent:
    """The content of a live item: its first payload bytes, of `size` in all. `expires_at` 0: never. `behind`: the item
    of its key that goes before it; empty: none does."""

    payload: bytes
    size: int
    key: str = ""
    headers: Headers = ()
    expires_at: float = 0.0
    behind: str = ""


class QueueItems(Protocol):
    """Single items, looked at and changed."""

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        """Changes those that wait, each whole or not at all, and none that somebody claims meanwhile. Answers of each
        a word of `model/one_item.py`. Attempts, keys and their order stay as they are. Raises InvalidRequest before
        anything is changed."""

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        """What a live item holds, with at most so many bytes of its payload; None: it has ended, or is not known."""


def due_after(before: int, wanted: float | None, now: int) -> int:
    """When an item is due that was due `before`. The engines have this rule in their own languages too (µs)."""
    if wanted is None:
        return before
    return min(before, now) if wanted == NOW else int(wanted * 1e6)
