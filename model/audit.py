"""Audit: the classes that every position of a stream, or every workload of a queue, ends in, and whether they sum up.

The audit can fail because it has two witnesses that do not copy from each other: the frontier says which positions are
settled, and the settlements say how (`tailers/rules/audit_book.py`); items that left for a store must be there or must
have ended there. (Chaperone, Uber's audit of its streams, counts in windows at every hop; here there is one hop, so
single positions can be named.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Fate(IntEnum):
    """The ways in which a position ends. The numbers are in checkpoints and never change meaning; 0 is a position that
    has not."""

    SUCCEEDED = 1
    DELAYED = 2  # durably in the delay service; what became of it there is the ledger's to say
    DEAD = 3
    DROPPED = 4  # by an operator's gate
    EXPIRED = 5
    CANCELLED = 6
    FILTERED = 7
    ABSENT = 8  # nothing was ever to be had there: compacted, a marker, a file that was gone
    LOST = 9  # lost to retention: the source forgot it before it ran

    @property
    def label(self) -> str:
        """The name users see."""
        return _LABELS.get(self, self.name.lower())


_LABELS = {Fate.LOST: "lost to retention"}
#: Names of a queue's states in an audit, as of a stream.
_OF_QUEUE = {"success": "succeeded", "fatal_failure": "dead", "new": "waiting", "retriable_failure": "delayed"}
#: The classes of what has not ended.
HELD, IN_FLIGHT, UNREAD = "held", "in flight", "unread"
#: Below a checkpoint, in a part of the stream: those that ended in ways that are not told apart so far back.
SETTLED = "settled"
#: Items that left for the delay service and ended there, well or without being run, but not as a dead letter.
AFTER_DELAY = "done after a delay"
#: Positions that an answer names of each kind of fault.
NAMED = 100


class Ending(NamedTuple):
    """Positions from `first` to `last`, both included, of which some did not succeed: how many ended in which way, by
    the number of the Fate; 0: without one. All others in it succeeded."""

    first: int
    last: int
    counts: dict[int, int]

    @property
    def length(self) -> int:
        """Number of positions in it."""
        return self.last - self.first + 1

    @property
    def plain(self) -> int | None:
        """The Fate's number when all of it ended in one way, else None."""
        length = self.last - self.first + 1
        for fate, count in self.counts.items():
            if count == length:
                return fate
        return None


class Passed(NamedTuple):
    """The book when stock was taken: the frontier, since where endings are kept, and those not durable then."""

    position: int
    told: int
    endings: tuple[Ending, ...]


@dataclass(slots=True)
class Audit:
    """The audit of one range of positions of one partition, from `first` to before `end`; or of a queue, from 0 to the
    number of workloads taken in.

    counts    by class; their sum is to be the range's length
    missing   positions that are in no class: the first NAMED, `missing_count` says how many
    doubled   positions that ended twice, or are in two places; likewise
    faults    what does not agree, for people
    items     of a source whose positions are far apart: how many of them there were; else every position counts
    passed    of a range: what its book knew; not part of the answer
    """

    tailer: str
    partition: str
    first: int
    end: int
    counts: dict[str, int] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    missing_count: int = 0
    doubled_count: int = 0
    faults: list[str] = field(default_factory=list)
    items: int | None = None
    passed: Passed | None = field(default=None, compare=False)

    @property
    def length(self) -> int:
        """Number of positions in the range, or of items where positions are far apart."""
        return self.end - self.first if self.items is None else self.items

    @property
    def sum(self) -> int:
        """Number of positions that are in a class."""
        return sum(self.counts.values())

    @property
    def good(self) -> bool:
        """Whether every position is in exactly one class, and all witnesses agree."""
        return self.sum == self.length and not (self.missing_count or self.doubled_count or self.faults)

    def verdict(self) -> list[str]:
        """The disagreements found, as sentences; empty when all agrees."""
        said = list(self.faults)
        if self.missing_count:
            said.append(f"{self.missing_count} in no class: {ranges(self.missing, self.missing_count)}")
        if self.doubled_count:
            said.append(f"{self.doubled_count} counted twice: {ranges(self.doubled, self.doubled_count)}")
        if not said and self.sum != self.length:
            said.append(f"the classes sum up to {self.sum} of {self.length}")
        return said


def ranges(positions: Sequence[int], count: int) -> str:
    """Rising positions for people: `3, 7–9, …`. `count`: how many there are in all."""
    parts: list[list[int]] = []
    for position in positions:
        if parts and parts[-1][1] == position - 1:
            parts[-1][1] = position
        else:
            parts.append([position, position])
    said = [str(first) if first == last else f"{first}–{last}" for first, last in parts]
    return ", ".join(said + ["…"] * (count > len(positions)))


def queue_audit(tailer: str, taken: int, states: Mapping[str, int], forgotten: int) -> Audit:
    """The audit of a queue: each workload ever taken in must be in one state, or have ended and been forgotten by the
    retention. States get the names of a stream's classes where one fits."""
    counts = {_OF_QUEUE.get(name, name): count for name, count in states.items() if count}
    if forgotten:
        counts["ended and forgotten"] = forgotten
    return Audit(tailer, "", 0, taken, counts)
