"""The port for dead letters: shown, counted, redriven, purged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter


class LetterPage(NamedTuple):
    """A page of letters without their payloads, oldest first; `total`: number of all letters, whatever the filter."""

    letters: list[DeadLetter]
    total: int


@dataclass(frozen=True, slots=True)
class LetterCount:
    """Number of letters of one function. `worn`: number of those that were redriven as often as is allowed, so that a
    redrive refuses them; `known`: whether a worker has registered the function."""

    function: str
    count: int
    worn: int
    known: bool


@dataclass(frozen=True, slots=True)
class LetterCounts:
    """Numbers of letters by function; `max_redrives`: how often the gateway allows one letter to be redriven."""

    counts: list[LetterCount]
    max_redrives: int


@dataclass(frozen=True, slots=True)
class Redriven:
    """A letter after a redrive: the id of the `workload` that it became, or why it was `refused` and stays."""

    id: str
    function: str
    workload: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class RedriveStep:
    """The letters of one step of a redrive; the next step goes on after number `next` (0: there is none)."""

    letters: list[Redriven]
    next: int = 0


class LetterPort(Protocol):
    """Calls about dead letters. A limit is at most 1000; 0: the usual one. Steps of one redrive or purge share a `run`,
    a text of the caller's own, by which they are one act in the record."""

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """The letters of a filter, oldest first, after number `after`."""

    async def dead_letter(self, id: str) -> DeadLetter:
        """One letter with its payload. Raises InvalidRequest for an unknown id."""

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """Number of letters of a filter, by function."""

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Makes the oldest letters of a filter workloads again. Each letter moves once, however often this is
        repeated."""

    async def purge(self, which: LetterFilter, limit: int = 1000, why: str = "", run: str = "") -> dict[str, int]:
        """Deletes the oldest letters of a filter; returns how many, by function. Empty: there were no more."""
