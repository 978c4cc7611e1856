"""The port for single items of a queue: their content, due time and priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ...model.workload import Headers

#: A due time that means the store's own now.
NOW: Final = 0.0
#: The highest priority number that every engine can index.
HIGHEST = (1 << 31) - 1


class Reschedule(NamedTuple):
    """A change of one waiting item. `due`: wall clock seconds of the store, or NOW, which does not delay an item that
    is due already; None: unchanged. `priority`: None: unchanged."""

    id: str
    due: float | None = None
    priority: int | None = None


@dataclass(slots=True)
class ItemContent:
    """The content of a live item: its first payload bytes, of `size` in all. `expires_at` 0: never. `behind`: the id of
    the item of the same key that goes first; empty: this one is first."""

    payload: bytes
    size: int
    key: str = ""
    headers: Headers = ()
    expires_at: float = 0.0
    behind: str = ""


class QueueItems(Protocol):
    """Single items, to read and to change."""

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        """Changes items that wait, each as a whole or not at all, and none that is claimed meanwhile. Answers each
        change with a word of `model/one_item.py`. Attempts, keys and the order within a key stay as they are. Raises
        InvalidRequest before anything is changed."""

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        """Returns the content of a live item, with at most `max_bytes` of its payload; None: it has ended, or is
        unknown."""


def due_after(before: int, wanted: float | None, now: int) -> int:
    """New due time (µs) of an item that was due at `before`. Redis and PostgreSQL have the same rule in their own
    languages."""
    if wanted is None:
        return before
    return min(before, now) if wanted == NOW else int(wanted * 1e6)
