"""The dead letters' protocol: workloads that will not be tried again by themselves, with their reasons."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Protocol

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, LetterRoom, Moved


class LetterKeeping(Protocol):
    """Letters kept, read, redriven (run again as fresh workloads) and forgotten. A change is durable when its method
    returns. A letter is removed by its number, and a replaced letter gets a new one: so only a letter that was read is
    removed. A store takes a bounded number of letters of each function and tenant."""

    async def add(self, letters: Sequence[DeadLetter]) -> builtins.list[str] | None:
        """Keeps the letters, as far as there is room for each; one with a known id replaces it, and always has room.
        Returns the ids of those for which there was none; None: all are kept. The `number` and `past` that are given do
        not matter: a letter whose id is that of a redriven workload gets that workload's past, and the time when it was
        first seen."""

    async def rooms(self, of: Sequence[tuple[str, str]] = ()) -> builtins.list[LetterRoom]:
        """The rooms of these functions and tenants, in this order; with none given, those that are full, the ones with
        most letters first, at most FULL_ROOMS of them."""

    async def list(self, which: LetterFilter, limit: int, after: int = 0, max_bytes: int = 0) -> list[DeadLetter]:
        """The letters with a number above `after`, oldest first. Payloads are left empty; with `max_bytes` they are
        there, about so many bytes in all (one letter at least)."""

    async def get(self, id: str) -> DeadLetter | None:
        """One letter with its payload; None: there is none of this id."""

    async def mark(self, numbers: Sequence[int], moving: bool) -> None:
        """Notes that letters are about to become workloads again, or that they are not."""

    async def moved(self, letters: Sequence[Moved], now: float) -> int:
        """Forgets letters that are workloads again, except those that stay, and keeps the past of each by the
        workload's id; in one step. A past is forgotten with its letter, or when no letter came for KEPT_PAST seconds.
        Returns how many letters were forgotten."""

    async def remove(self, numbers: Sequence[int]) -> int:
        """Forgets letters; returns how many there were."""

    async def counts(self, which: LetterFilter = EVERY) -> dict[str, int]:
        """Number of letters of each function."""

    async def count(self) -> int:
        """Number of letters."""


class LetterAudits(Protocol):
    """Positions of streams that ended in a letter, for audits of a tailer."""

    async def positions(self, tailer: str) -> dict[str, int]:
        """Number of positions of each partition of a tailer that ever had a letter: those that have one, and those
        whose letter was redriven or purged."""

    async def died(self, tailer: str, partition: str, first: int, end: int) -> int | None:
        """Number of positions from `first` to before `end` that ever had a letter; None: some are so old that they are
        only known as a sum."""

    async def died_at(self, tailer: str, partition: str, first: int, end: int, limit: int) -> builtins.list[int] | None:
        """The positions from `first` to before `end` that ever had a letter, rising, the lowest `limit` of them; None:
        some are so old that they are only known as a sum."""


class DeadLetters(LetterKeeping, LetterAudits, Protocol):
    """Dead letters as an engine keeps them: both protocols. A part that needs one of them asks for that one only."""


#: Most letters of one function and tenant, where the configuration does not say it.
MOST = 100_000
#: Full rooms of one answer.
FULL_ROOMS = 100
#: Seconds for which the past of a redriven workload is remembered: longer than any retry policy goes on.
KEPT_PAST = 90 * 86_400.0
#: Positions of a partition that are known one by one after their letters went; beyond that only the higher half is.
GONE = 10_000

__all__ = [
    "EVERY",
    "FULL_ROOMS",
    "GONE",
    "KEPT_PAST",
    "MOST",
    "DeadLetter",
    "DeadLetters",
    "LetterAudits",
    "LetterFilter",
    "LetterKeeping",
    "LetterRoom",
    "Moved",
]
