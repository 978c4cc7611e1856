"""Moves of the rows of failed stream items in the ledger (L14 to L20), pure.

    an item fails at its source       PARKING(n+1) → append to the delay service → PARKED(n+1) → settled;
                                      a row due soon stays PARKING(n+1)
    … or is throttled there           SUSPECT, which bars nothing but its time
    … or is out for long there        PARKING(1), due NOT_YET → append a guard → settled, while it runs: detached
    a detached item ends              DONE, DEAD, or PARKING(n+1) → append; or PARKING(n), due: its guard starts
    a new owner reads its position    SUSPECT: run when due, alone if something died · PARKING: append again
                                      detached: append its guard again · any other row: never run from here
    a copy comes due                  its own n: RUNNING by compare-and-set, then pushed
                                      detached: it is a guard, appended again for later
                                      a later PARKING: that one is appended again · anything else: it is over
    a copy is throttled               PARKED, its own n, until its new time: it is still in the due stream
    a copy ends                       DONE, DEAD, or PARKING(n+1) → append → PARKED(n+1); then settled in its due stream

Every write compares the row as it was read, whole (L16), so the loser of a race learns the row as it stands and asks
here again. Nothing here removes rows: the store does, when they are terminal and passed (L20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ...model.ledger import NOT_YET, TERMINAL, LedgerEntry, LedgerPlace
from ...model.tries import Try
from .settlement import History, Settlement

#: A row that is due within so many seconds is not written once more to say that it was appended: its copy starts from
#: PARKING as well (L16), and does so soon. An owner that takes over meanwhile cannot know it, and appends again (L15,
#: L18): one more copy of each item that failed in the moments before.
SOON = 10.0


class Find(Enum):
    """Actions of a new owner on an item whose position it reads."""

    RUN = "run"
    ALONE = "alone"  # suspected: runs from the source, with nothing beside it (L14)
    APPEND = "append"  # append it to the delay service again, then it is settled (L15)
    OUT = "out"  # detached: append its guard again, then it is settled, while it runs
    SKIP = "skip"  # it is elsewhere or over: settled


def found(row: LedgerEntry | None) -> Find:
    """The action of an owner on an item of its source, by the item's row."""
    if row is None:
        return Find.RUN
    if row.place is LedgerPlace.SUSPECT:
        return Find.ALONE
    if row.is_detached:
        return Find.OUT
    return Find.APPEND if row.place is LedgerPlace.PARKING else Find.SKIP


_OF_COPIES = frozenset((LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING))


class CopyVerdict(Enum):
    """Actions on a copy that came due. STALE: a newer owner of the due stream runs it, so this one is over."""

    START = "start"
    APPEND = "append"
    GUARD = "guard"  # the item runs, detached: this one is appended again for later
    OVER = "over"
    STALE = "stale"


def copy_finds(row: LedgerEntry | None, n: int, epoch: int, known: LedgerEntry | None = None) -> CopyVerdict:
    """The action on the n-th copy, read by the owner of its due stream in `epoch`, by the row as it stands; `known` is
    the row that this owner wrote itself when it started this very copy before.

    A copy whose n is above the row's can only be met when the ledger was restored from a backup; it starts, since the
    copy that the row speaks of may be gone.
    """
    if row is None or row.place in TERMINAL or row.place is LedgerPlace.SUSPECT:
        return CopyVerdict.OVER  # gone, or the item runs from its source (a restored ledger)
    if is_newer(row, epoch):
        return CopyVerdict.STALE
    if row.is_detached:
        return CopyVerdict.GUARD
    if n < row.n:
        return CopyVerdict.APPEND if row.place is LedgerPlace.PARKING else CopyVerdict.OVER  # L18
    if row.place is LedgerPlace.RUNNING and row.epoch == epoch and row != known:
        return CopyVerdict.OVER  # another copy of the same, started here, and not yet over (L17)
    return CopyVerdict.START


def is_newer(row: LedgerEntry, epoch: int) -> bool:
    """Whether a copy's row is of an owner of the due stream after the one in `epoch`: it runs the copy, or is yet to
    come, since the ledger was put back from a backup (`stores/state/sqlite_restored.py`)."""
    return row.place in _OF_COPIES and row.epoch > epoch


def may_start_unread(row: LedgerEntry, n: int, epoch: int, now: float) -> bool:
    """Whether the n-th copy may try to start from a row as this process wrote it last, without reading it: where
    another write came between, the one that would start it is refused, since it compares the row, whole (L16)."""
    waits = row.place is LedgerPlace.PARKING or row.place is LedgerPlace.PARKED
    return waits and row.n == n and row.epoch <= epoch and row.due <= now


class Due(NamedTuple):
    """A copy that wants to start: its item's position, its n, the row its owner wrote for it before, and its counts
    since then (None: none)."""

    position: int
    n: int
    known: LedgerEntry | None = None
    history: History | None = None


class Starts(NamedTuple):
    """Verdicts on the copies of one batch, by their index: `start` with the row before and after; `append` with the row
    to append again; `guard` with the row of a detached item, whose guard is appended again; `wait` with the time (wall
    clock) before which they may not start; `over` are settled; `stale` says that this owner is over."""

    start: dict[int, tuple[LedgerEntry, LedgerEntry]]
    append: dict[int, LedgerEntry]
    guard: dict[int, LedgerEntry]
    wait: dict[int, float]
    over: list[int]
    stale: bool


def starts(rows: Mapping[int, LedgerEntry], copies: Sequence[Due], epoch: int, fence: int, now: float) -> Starts:
    """Decides a batch of copies of one ⟨source, partition⟩ at `now`, wall clock. `fence` is above those of all rows
    (L19). The second copy of an item in one batch is over, as one that came later would be."""
    newest = max([row.epoch for row in rows.values()], default=0)
    stale = newest > epoch and any(is_newer(row, epoch) for row in rows.values())
    plan = Starts({}, {}, {}, {}, [], stale)
    taken: set[int] = set()
    for index, copy in enumerate(copies):
        row = rows.get(copy.position)
        verdict = copy_finds(row, copy.n, epoch, copy.known)
        if row is not None and verdict is CopyVerdict.START and copy.position not in taken:
            taken.add(copy.position)
            if row.due > now:
                plan.wait[index] = row.due
                continue
            plan.start[index] = row, running(row, copy, epoch, fence)
        elif row is not None and verdict is CopyVerdict.APPEND:
            plan.append[index] = row
        elif row is not None and verdict is CopyVerdict.GUARD:
            plan.guard[index] = row
        elif verdict is not CopyVerdict.STALE:
            plan.over.append(index)
    return plan


def running(row: LedgerEntry, copy: Due, epoch: int, fence: int) -> LedgerEntry:
    """The row of a copy that starts."""
    if fence <= row.fence:
        raise ValueError(f"a copy's fence must rise: {fence} after {row.fence}")
    _, _, n, due, attempts, crashes, throttles, _, _, first_seen, tries = row
    if copy.history is not None:
        crashes, throttles = copy.history.crashes, copy.history.throttles
    n = n if n > copy.n else copy.n
    return LedgerEntry(
        row.position, LedgerPlace.RUNNING, n, due, attempts, crashes, throttles, fence, epoch, first_seen, tries
    )


def is_suspect(row: LedgerEntry, epoch: int) -> bool:
    """Whether a copy that starts from this row ran when a former owner of its due stream died."""
    return row.place is LedgerPlace.RUNNING and row.epoch < epoch


def parking(
    before: LedgerEntry | None,
    position: int,
    settlement: Settlement,
    due: float,
    fence: int,
    first_seen: float,
    tries: tuple[Try, ...] = (),
) -> LedgerEntry:
    """The row of an item that failed and is about to be parked until `due`, whether it ran from its source or as a
    copy."""
    return LedgerEntry(
        position,
        LedgerPlace.PARKING,
        n=1 if before is None else before.n + 1,
        due=due,
        attempts=settlement.failed,
        crashes=settlement.crashes,
        throttles=settlement.throttles,
        fence=fence if before is None else max(before.fence, fence),
        first_seen=first_seen if before is None or not before.first_seen else before.first_seen,
        tries=tries,
    )


def detached(
    before: LedgerEntry | None,
    position: int,
    history: History,
    fence: int,
    first_seen: float,
    tries: tuple[Try, ...] = (),
) -> LedgerEntry:
    """The row of an item that has been out for long under `fence`, and that the frontier is about to pass while it
    runs. `history` has its counts before that."""
    return LedgerEntry(
        position,
        LedgerPlace.PARKING,
        n=1 if before is None else before.n + 1,
        due=NOT_YET,
        attempts=history.attempt - 1,
        crashes=history.crashes,
        throttles=history.throttles,
        fence=fence if before is None else max(before.fence, fence),
        first_seen=first_seen if before is None or not before.first_seen else before.first_seen,
        tries=tries,
    )


def released(row: LedgerEntry, due: float, attempts: int = 0, crashes: int = 0) -> LedgerEntry:
    """The row of a detached item that does not run any more: its guard starts it, not before `due`. `attempts` and
    `crashes` are the counts now, where they are more."""
    return row._replace(due=due, attempts=max(row.attempts, attempts), crashes=max(row.crashes, crashes))


def suspect(
    before: LedgerEntry | None,
    position: int,
    history: History,
    epoch: int = 0,
    due: float | None = None,
    tries: tuple[Try, ...] = (),
    fence: int = 0,
) -> LedgerEntry:
    """The mark of an item that ran when something died: its tailer (`epoch` is that of the owner who marks it), or its
    process, or that failed or was throttled and is tried again from its source (0), not before `due` (None: as it was).
    The counts of a former mark stay. `fence`: of the attempt that has ended, if one has."""
    row = before if before is not None else LedgerEntry(position, LedgerPlace.SUSPECT)
    return row._replace(
        crashes=max(row.crashes, history.crashes),
        throttles=max(row.throttles, history.throttles),
        attempts=max(row.attempts, history.attempt - 1),
        epoch=max(row.epoch, epoch),
        fence=max(row.fence, fence),
        tries=tries or row.tries,
        due=row.due if due is None else due,
    )


def knows_end(row: LedgerEntry | None, fence: int) -> bool:
    """Whether a row was written after the attempt with this fence had ended: whoever hears of that end once more is not
    to count it again. RUNNING with this very fence is the attempt itself; with a higher one it is a later attempt."""
    if row is None or row.is_detached:
        return False
    return row.fence > fence or (row.fence == fence and row.place is not LedgerPlace.RUNNING)


def throttled(row: LedgerEntry, history: History, due: float) -> LedgerEntry:
    """The row of a copy that ran and was throttled: it has not left the due stream, so it is parked there, with its own
    n as before, until `due`."""
    return row._replace(place=LedgerPlace.PARKED, due=due, crashes=history.crashes, throttles=history.throttles)


class Next(Enum):
    """Next steps after the write of a PARKING row."""

    APPEND = "append"  # the row says it is to be appended, by whomever it was written
    OVER = "over"  # somebody is further, or the checkpoint has passed: settled
    AGAIN = "again"  # not this row yet: write again, from the row as it stands


def after_parking(wanted: LedgerEntry, row: LedgerEntry | None) -> Next:
    """The next step after a compare-and-set to `wanted` that left the row as `row`. A repeated write finds its own row,
    or one further on."""
    if row is None:
        return Next.OVER  # L13: below the checkpoint no row is created
    if row.place is LedgerPlace.SUSPECT:
        return Next.AGAIN  # the mark was not known
    return Next.APPEND if row.place is LedgerPlace.PARKING else Next.OVER


def is_soon(row: LedgerEntry, now: float) -> bool:
    """Whether an appended row, at `now` (wall clock), is due so soon that it stays PARKING."""
    return row.due - now <= SOON


def is_marked(row: LedgerEntry) -> bool:
    """Whether an item is suspected of a tailer's death; a crash that it is suspected of is counted instead."""
    return row.place is LedgerPlace.SUSPECT and row.epoch > 0


def history(row: LedgerEntry, late: float = 0.0) -> History:
    """The past of the item before its next hand-out, by its row."""
    return History(row.attempts + 1, row.crashes, row.throttles, late)
