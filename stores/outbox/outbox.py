"""The outbox as its relay (outbox publisher) sees it: committed rows, taken in order, and removed one by one once they
are safe elsewhere.

A row is removed by its place and its token, never by "everything below": a transaction that took a low place may commit
later than one with a higher place, and a table that was made again gives the same places to other rows. Removing a row
that is gone is harmless. So are two relays at once: each hands over the oldest rows, in order, under the rows' own
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ...model.errors import NotConnected
from .item import OutboxRow


class OutboxCounts(NamedTuple):
    """Numbers of rows that wait, and of rows that were set aside."""

    going: int
    aside: int


class Outbox(Protocol):
    """The protocol of an outbox. All methods raise NotConnected while the database cannot be reached, has no such table
    or does not let this user use it, and may be called again."""

    name: str

    async def open(self) -> None:
        """Connects. Harmless when open."""

    async def close(self) -> None:
        """Disconnects. Harmless when closed."""

    async def take(self, most: int, most_bytes: int, waiting: Sequence[str]) -> list[OutboxRow]:
        """Returns the oldest rows, at most `most`, and about `most_bytes` (at least one row). Leaves out rows of the
        `waiting` functions, and rows of a key that has an older row of one of those. Changes nothing."""

    async def remove(self, rows: Mapping[int, str]) -> None:
        """Removes rows that are safe elsewhere. `rows`: place → token."""

    async def set_aside(self, reasons: Mapping[int, str]) -> None:
        """Sets rows aside, so that they are not taken any more. `reasons`: place → why. Raises NotConnected also when
        the table refuses the reason of some rows; the others are set aside then."""

    async def take_up(self) -> int:
        """Lets rows that were set aside be taken again; returns how many."""

    async def aside(self, most: int) -> list[tuple[int, str, str]]:
        """Returns the oldest rows that were set aside: place, function, reason."""

    async def count(self) -> OutboxCounts:
        """Counts the rows."""


def not_set_aside(name: str, refused: Mapping[int, str]) -> NotConnected:
    """The error for rows that are no workloads and cannot be set aside. `refused`: place → the database's answer."""
    place, said = next(iter(refused.items()))
    return NotConnected(
        f"{name}: row {place} is no workload and cannot be set aside ({said}): correct or delete this row"
    )


__all__ = ["Outbox", "OutboxCounts", "OutboxRow", "not_set_aside"]
