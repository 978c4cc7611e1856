"""Guests that come into some worlds, beside items, schedules and faults: the questions that the audit asks each of
them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Protocol


class Guest(Protocol):
    """A guest that brings items to the queue in ways of its own, and knows how they must end."""

    def pending(self) -> Iterator[str]:
        """Lines for people about work of this guest that is not over."""

    def made(self) -> Set[str]:
        """Ids of the items of the queue that came by this guest."""

    def at_rest(self) -> None:
        """Tells the journal of everything that is not as it should be when all is over."""
