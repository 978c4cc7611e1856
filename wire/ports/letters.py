"""The port for dead letters: seen, counted, made workloads again, forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter


class LetterPage(NamedTuple):
    """Letters without their payloads, oldest first; `total`: of all letters, whichever were asked for."""

    letters: list[DeadLetter]
    total: int


@dataclass(frozen=True, slots=True)
class LetterCount:
    """Letters of one function. `worn`: how many of them were redriven as often as is allowed, so that a redrive would
    refuse them; `known`: whether a worker has registered the function."""

    function: str
    count: int
    worn: int
    known: bool


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """By function; `max_redrives` is how often the gateway allows."""

    counts: list[LetterCount]
    max_redrives: int


@dataclass(frozen=True, slots=True)
class Redriven:
    """One letter: the id of the `workload` that it became, or why it was `refused` and stays."""

    id: str
    function: str
    workload: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class RedriveStep:
    """The letters of one step, with what became of each; the next one goes on after number `next` (0: that was all)."""

    letters: list[Redriven]
    next: int = 0


class LetterPort(Protocol):
    """Dead letters. A limit is at most 1000; 0: the usual one. What is asked for step by step is one act by its `run`,
    a text of the caller's own."""

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """Those meant, oldest first, from after number `after` on."""

    async def dead_letter(self, id: str) -> DeadLetter:
        """One with its payload. Raises InvalidRequest when there is none of this id."""

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """How many there are of each function."""

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Makes the oldest of those meant workloads again. Each letter moves once, however often this is repeated."""

    async def purge(self, which: LetterFilter, limit: int = 1000, why: str = "", run: str = "") -> dict[str, int]:
        """Forgets the oldest of those meant; how many of each function. Empty: there were no more."""
