"""A dead letter: a workload that will not be tried again by itself, with its reasons; and which letters are meant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .tries import Try
from .workload import Headers, Kind


class Death(NamedTuple):
    """One end of a workload that was redriven after it."""

    died_at: float
    outcome: str
    reason: str
    attempts: int
    crashes: int
    progress: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a redriven workload: where it first came from, how often it was redriven, how it died before (oldest
    first, the last ones)."""

    tailer: str
    id: str
    first_seen: float
    redrives: int
    deaths: tuple[Death, ...] = ()


@dataclass(slots=True)
class DeadLetter:
    """A dead letter. `outcome` is the Outcome's name in lower case; `tailer` is where it came from; times are wall
    clock seconds.

    partition, position   of the stream item that died; -1: an item without a position
    past                  None: never redriven
    tries                 how its attempts went, the last ones
    number                the store's: rises with each letter, new when a letter is replaced; 0: not stored yet
    """

    id: str
    tailer: str
    kind: Kind
    payload: bytes
    outcome: str
    reason: str
    attempts: int
    crashes: int
    first_seen: float
    died_at: float
    key: str = ""
    headers: Headers = ()
    progress: str = ""
    partition: str = ""
    position: int = -1
    past: Past | None = None
    tries: tuple[Try, ...] = ()
    number: int = field(default=0, compare=False)

    @property
    def redrives(self) -> int:
        """Number of redrives before this death."""
        return 0 if self.past is None else self.past.redrives

    @property
    def in_line(self) -> bool:
        """Whether it was redriven and stands in its stream's line again: its past knows this very death."""
        past = self.past
        return past is not None and past.id == self.id and past.deaths[-1].died_at == self.died_at


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """A filter of dead letters: all conditions hold; an empty one means any.

    tailer      where it died or where it first came from
    reason      a part of the reason, as it is written
    since       died at this wall clock second or later; `until`: before it
    attempts    at least so many; `crashes` and `redrives` likewise
    moving      only those whose redrive has begun and was not finished
    """

    ids: tuple[str, ...] = ()
    function: str = ""
    tailer: str = ""
    collection: str = ""
    tenant: str = ""
    reason: str = ""
    since: float = 0.0
    until: float = 0.0
    attempts: int = 0
    crashes: int = 0
    redrives: int = 0
    moving: bool = False


class Moved(NamedTuple):
    """A letter that became a workload again: its number, the workload's id, and the past that this brings along."""

    number: int
    id: str
    past: Past

    @property
    def stays(self) -> bool:
        """Whether the workload is the very item that died: it stands in its stream's line again, and its letter stays,
        marked, until it ends."""
        return self.id == self.past.id


class LetterRoom(NamedTuple):
    """The room for the letters of one ⟨function, tenant⟩: how many it has, and the most that it takes. It has more
    where that was lowered since."""

    function: str
    tenant: str
    held: int
    most: int

    @property
    def left(self) -> int:
        """Number of letters that it still takes."""
        return max(0, self.most - self.held)


EVERY = LetterFilter()
#: The header of the letter of a job's item, which has none of its own: it is redriven in its job, or not at all.
JOB_ITEM = ("tailrace-job", "item")
#: The header of the letter of an item that had a place in a stream's order: redriven, it waits there again.
IN_LINE = ("tailrace-line", "stream")
