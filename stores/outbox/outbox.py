"""An outbox as its relay sees it: committed rows, taken in order, removed one by one once they are safe elsewhere.

A row is removed by its place and never by "everything below": a transaction that took a low place may commit later
than one with a higher place. Removing one that is gone is harmless, and so are two relays at once: each hands over the
oldest rows, in order, under the rows' own tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ...model.errors import NotConnected
from .item import OutboxRow


class OutboxCounts(NamedTuple):
    """Numbers of rows: those that wait, and those that were set aside."""

    going: int
    aside: int


class Outbox(Protocol):
    """All methods raise NotConnected while the database cannot be reached, has no such table or lets this user not use
    it, and may be called again."""

    name: str

    async def open(self) -> None:
        """Connects. Harmless when open."""

    async def close(self) -> None:
        """Disconnects. Harmless when closed."""

    async def take(self, most: int, most_bytes: int, waiting: Sequence[str]) -> list[OutboxRow]:
        """The oldest rows, at most so many and about so many bytes (at least one). Without those of the `waiting`
        functions, and without rows of a key that has an older one of those. Changes nothing."""

    async def remove(self, places: Sequence[int]) -> None:
        """Removes rows that are safe elsewhere."""

    async def set_aside(self, reasons: Mapping[int, str]) -> None:
        """By place: why a row is not taken any more. Raises NotConnected, too, when the table refuses to have that
        noted of some; it is noted of the others then."""

    async def take_up(self) -> int:
        """Rows that were set aside are taken again; how many."""

    async def aside(self, most: int) -> list[tuple[int, str, str]]:
        """The oldest rows that were set aside: place, function, reason."""

    async def count(self) -> OutboxCounts:
        """How many there are."""


def not_set_aside(name: str, refused: Mapping[int, str]) -> NotConnected:
    """By place: rows that are no workloads and cannot be set aside, with what the database says to that."""
    place, said = next(iter(refused.items()))
    return NotConnected(f"{name}: row {place} is no workload and cannot be set aside ({said}): mend or delete it")


__all__ = ["Outbox", "OutboxCounts", "OutboxRow", "not_set_aside"]
