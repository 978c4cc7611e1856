"""The unit of work, alone and in columns.

On the hot path nothing is one object per item: a `Flight` holds parallel lists, and an item is known by its `ref`, the
flight's number and the item's index in one integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from .outcome import Outcome
from .priority import DEFAULT_PRIORITY

#: An item's place in its flight takes this many bits of a ref; a flight holds at most FLIGHT_ITEMS items.
INDEX_BITS = 10
FLIGHT_ITEMS = 1 << INDEX_BITS
INDEX_MASK = FLIGHT_ITEMS - 1

#: Headers are few and small: pairs of text, in order.
Headers = tuple[tuple[str, str], ...]


class Kind(NamedTuple):
    """The kind of an item, all that the scheduler may know of it: never where it came from."""

    function: str
    priority: int = int(DEFAULT_PRIORITY)  # a Priority's rank; a plain int hashes five times faster
    collection: str = ""
    tenant: str = ""


@dataclass(slots=True)
class Extra:
    """The fields that few items carry, kept apart so that the others do not pay for it."""

    key: str = ""  # the ordering key; empty: none
    headers: Headers = ()
    crashes: int = 0  # processes that died while it ran
    expires_at: float = 0.0  # wall clock, seconds; 0: never
    alone: bool = False  # a suspect: runs in a process of its own
    progress: str = ""  # the last progress note of an earlier attempt
    again: bool = False  # it was out and was lost: it goes before what was not
    units: tuple[tuple[str, float], ...] = ()  # what it is estimated to use of units with a rate of their own
    refused: frozenset[str] = (
        frozenset()
    )  # versions of its function that do not take its payload; the scheduler's alone


#: The extra fields of most items: none are set. It is never changed.
NO_EXTRA = Extra()


class Owned(NamedTuple):
    """The row of ownership that a flight was handed out under, and what its items are called there.

    source, partition, epoch   the row, and the epoch of it that handed the flight out
    part, positions            where the items are; only whoever owns the row looks at these
    parts                      instead of `part`, where the items are of several: each with how many of them, in order
    """

    source: str
    partition: str
    epoch: int
    part: str
    positions: Sequence[int]
    parts: Sequence[tuple[str, int]] = ()

    def by_part(self, indexes: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """Yields these indexes, which rise, by the part that their items are in."""
        first = 0
        for part, count in self.parts or ((self.part, len(self.positions)),):
            mine = [index for index in indexes if first <= index < first + count]
            if mine:
                yield part, mine
            first += count


@dataclass(slots=True)
class Flight:
    """One hand-out: up to FLIGHT_ITEMS items in parallel lists, under one fence and one lease.

    Invariants: every list has the length of `ids`; `extras` is keyed by index; `fence` rises with every hand-out of
    any item in it, and comes from whoever holds the source's lease. `owned` is None where the store's own lease stands
    behind it, and not a row of ownership.
    """

    number: int
    fence: int
    kinds: list[Kind]
    ids: list[str]
    payloads: list[bytes]
    attempts: list[int]  # 1 for a first attempt
    extras: dict[int, Extra] = field(default_factory=dict)
    wants_result: bool = False
    dues: Sequence[float] = ()  # when a few of them were due, wall clock seconds (`due_times.py`), 0: not known
    waited: Sequence[float] = ()  # the same as seconds before it was pushed, below 0: not known; it came over the wire
    owned: Owned | None = None

    def __len__(self) -> int:
        return len(self.ids)


def ref(flight: int, index: int) -> int:
    """The integer that names an item in a session: its flight's number, then its index."""
    return flight << INDEX_BITS | index


class DroppedBy(NamedTuple):
    """The operator's gate that dropped an item: the control store's version that it made, who set it, and why."""

    version: int
    who: str
    why: str


class Ended(msgspec.Struct):
    """The end of one item, for every item that did not plainly succeed or that has something to say.

    reason    for people: the exception's text, the gate's name, the signal
    after     seconds to wait before it may run again (retry, throttled); None: the retry policy says
    result    the function's return value as bytes (success only)
    crashed   the process died while this item ran (lost only): a suspicion, counted apart from attempts
    dropped_by  the gate (dropped only)
    downstream  what throttled it (throttled only); whoever runs it says that, and the scheduler keeps what is declared
    scope       `tenant`: only the account of the item's tenant was throttled there
    used        what the run said that it used, for the scheduler: downstream (empty: of none), unit, how much
    misfit      it did not run: the function as it is there does not take its payload (fatal only)
    asked       it asked for another try by itself (retry only): that says nothing of how its function is
    """

    outcome: int
    reason: str = ""
    after: float | None = None
    result: bytes | None = None
    crashed: bool = False
    progress: str = ""
    dropped_by: DroppedBy | None = None
    downstream: str = ""
    scope: str = ""
    used: tuple[tuple[str, str, float], ...] = ()
    misfit: bool = False
    asked: bool = False


#: The end of an item whose own end cannot be written: it costs itself alone, not others that leave in the same frame.
UNWRITABLE = Ended(
    Outcome.RETRY, "the end of this run cannot be written: look at the exception or the result of the function"
)


@dataclass(slots=True)
class Outcomes:
    """A batch of ends: refs that simply succeeded, and the others with their Ended."""

    succeeded: list[int] = field(default_factory=list)
    ended: dict[int, Ended] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.ended)
