"""Steps of an item that leaves a stream tailer, pure: its row, the append where it goes to, the mark in its row, done.

    way       row                    append to           mark
    park      PARKING(n+1)           the delay service   PARKED, unless it is due soon (L15)
    guard     ·                      the delay service   ·
    detach    PARKING(n+1), NOT_YET  the delay service   ·
    bury      ·                      the dead letters    DEAD     } of a copy, and of a detached item:
    store     ·                      the results         DONE     } the row of any other item goes with the checkpoint
    drop      ·                      the drops           DONE     }
    end       ·                      ·                   DONE, of such an item too
    count     ·                      ·                   its counts so far: it stays, and runs again
    release   ·                      ·                   the time from which a detached item's guard may start it
    free      ·                      ·                   the same, for an item that a former owner had detached

Each step is repeatable alone: a store that was away is asked again for this step, not for those before it. A write that
finds another row than it knew decides here what follows.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ...model.ledger import LedgerEntry, LedgerPlace
from .ledger import Next, after_parking, is_soon


class Way(Enum):
    """Ways of an item out of its tailer. GUARD_SOONER: a guard that was refused, as the bound on delays was lowered."""

    PARK = "park"
    GUARD = "guard"
    GUARD_SOONER = "guard sooner"
    DETACH = "detach"
    BURY = "bury"
    STORE = "store"
    DROP = "drop"
    END = "end"
    COUNT = "count"
    RELEASE = "release"
    FREE = "free"


class Step(Enum):
    """The step that is next. The last four are ends: OVERTAKEN by another write of its row, or REFUSED a guard, a
    detached item stays where it is; with NO_ROOM for its letter any item does."""

    ROW = "row"
    APPEND = "append"
    MARK = "mark"
    DONE = "done"
    OVERTAKEN = "overtaken"
    REFUSED = "refused"
    NO_ROOM = "no room"


class DepartureEvent(Enum):
    """Events of a departure: its row was WRITTEN, or the store answered an append."""

    WRITTEN = "written"
    APPENDED = "appended"
    REFUSED = "refused"
    MARKED = "marked"


class Leg(NamedTuple):
    """The state of a departure: the step that is next on its way; `before`, its row as it was last read, and `row`, as
    it is to be once it is written (None: it has none, or keeps what it has)."""

    way: Way
    step: Step
    before: LedgerEntry | None = None
    row: LedgerEntry | None = None


#: Ways whose row is written before anything is appended.
_ROW_FIRST = frozenset((Way.PARK, Way.DETACH))
#: Ways that are their row's alone.
_ROW_ONLY = frozenset((Way.END, Way.COUNT, Way.RELEASE, Way.FREE))


def begin(way: Way, before: LedgerEntry | None = None, row: LedgerEntry | None = None) -> Leg:
    """The state of a departure that begins, with its row as it was last read and as it shall be."""
    if way in _ROW_ONLY:
        return Leg(way, Step.MARK if row is not None else Step.DONE, before, row)
    return Leg(way, Step.ROW if row is not None and way in _ROW_FIRST else Step.APPEND, before, row)


def resume(way: Way, row: LedgerEntry) -> Leg:
    """The state of a departure whose row says already that it is to be appended, no matter which process wrote that
    (L15, L18)."""
    return Leg(way, Step.APPEND, row, row)


def follow(leg: Leg, event: DepartureEvent, now: float, found: LedgerEntry | None = None) -> Leg:
    """The state of a departure after an event at `now`, wall clock; `found` is the row as it stands after it was
    WRITTEN."""
    if event is DepartureEvent.WRITTEN:
        return _written(leg, found)
    if event is DepartureEvent.REFUSED:
        return _refused(leg)
    way, _, before, row = leg
    if event is DepartureEvent.MARKED or row is None or way is Way.DETACH:
        return Leg(way, Step.DONE, before, row)
    if way is not Way.PARK:
        return Leg(way, Step.MARK, before, row)
    if is_soon(row, now):
        return Leg(way, Step.DONE, row, row)
    return Leg(way, Step.MARK, row, row._replace(place=LedgerPlace.PARKED))


def _written(leg: Leg, found: LedgerEntry | None) -> Leg:
    """The state after the row of a parked or detached item was compared and set; `found` is the row as it stands."""
    way, _, before, row = leg
    assert row is not None
    if way is Way.DETACH:
        return Leg(way, Step.APPEND if found == row else Step.OVERTAKEN, before, row)
    match after_parking(row, found):
        case Next.APPEND:
            return Leg(way, Step.APPEND, found, found)
        case Next.AGAIN if found is not None:
            return Leg(way, Step.ROW, found, row._replace(n=found.n + 1))
        case _:
            return Leg(way, Step.DONE, found, None)


def _refused(leg: Leg) -> Leg:
    """The state after the delay service refused an item for good: a park becomes a dead letter, a guard is looked at
    sooner, and an item that was to be detached has no guard, so it is not passed; or after there was no room for a
    letter. Raises ValueError for any other way."""
    way, _, _, row = leg
    match way:
        case Way.PARK:
            return Leg(Way.BURY, Step.APPEND, row, None if row is None else row._replace(place=LedgerPlace.DEAD))
        case Way.GUARD:
            return Leg(Way.GUARD_SOONER, Step.APPEND)
        case Way.DETACH:
            return Leg(way, Step.REFUSED, row, row)
        case Way.BURY:
            return leg._replace(step=Step.NO_ROOM)
        case _:
            raise ValueError(
                f"a departure {way.value!r} goes where nothing is refused for good, so it cannot be refused"
            )
