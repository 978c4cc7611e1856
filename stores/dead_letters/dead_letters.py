"""The dead letters' protocol: workloads that will not be tried again by themselves, with their reasons."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Protocol

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, Moved


class LetterKeeping(Protocol):
    """Letters kept, read, redriven and forgotten. Durable when a method returns. A letter is removed by its number,
    which a replaced one does not keep: what is removed is what was read."""

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        """Keeps the letters; one with a known id replaces it. `number` and `past` of what is given do not matter: a
        letter whose id is that of a redriven workload has that one's past from then on, and its first sight."""

    async def list(self, which: LetterFilter, limit: int, after: int = 0, max_bytes: int = 0) -> list[DeadLetter]:
        """Oldest first, those with a number above `after`. Payloads are left empty; with `max_bytes` they are there,
        about so many bytes in all (one letter at least)."""

    async def get(self, id: str) -> DeadLetter | None:
        """One letter with its payload."""

    async def mark(self, numbers: Sequence[int], moving: bool) -> None:
        """Notes that letters are about to become workloads again, or that they are not."""

    async def moved(self, letters: Sequence[Moved], now: float) -> int:
        """Forgets letters that are workloads again, and remembers what these bring along; in one step. A past is
        forgotten with its letter, or when no letter came for KEPT_PAST seconds. Returns how many letters there were."""

    async def remove(self, numbers: Sequence[int]) -> int:
        """Forgets letters; returns how many there were."""

    async def counts(self, which: LetterFilter = EVERY) -> dict[str, int]:
        """How many there are of each function."""

    async def count(self) -> int:
        """How many there are."""


class LetterAudits(Protocol):
    """Positions of streams that ended in a letter, for audits of a tailer."""

    async def positions(self, tailer: str) -> dict[str, int]:
        """How many positions of each partition of a tailer ever had a letter: those that have one, and those whose
        letter was redriven or purged."""

    async def died(self, tailer: str, partition: str, first: int, end: int) -> int | None:
        """How many of the positions from `first` to before `end` ever had a letter; None: so long ago that it is not
        known any more."""

    async def died_at(self, tailer: str, partition: str, first: int, end: int, limit: int) -> builtins.list[int] | None:
        """Which those are, rising, the lowest `limit` of them; None likewise."""


class DeadLetters(LetterKeeping, LetterAudits, Protocol):
    """Dead letters as an engine keeps them: both ports. A part that needs one of them takes that one."""


#: Seconds for which the past of a redriven workload is remembered: longer than any retry policy goes on.
KEPT_PAST = 90 * 86_400.0
#: Positions of a partition that are remembered one by one after their letters went; half of them stay when it is more.
GONE = 10_000

__all__ = [
    "EVERY",
    "GONE",
    "KEPT_PAST",
    "DeadLetter",
    "DeadLetters",
    "LetterAudits",
    "LetterFilter",
    "LetterKeeping",
    "Moved",
]
