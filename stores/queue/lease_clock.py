"""The end of a lease, whatever the wall clock does: THE rule for a store that counts leases by its own host's clocks.

A lease ends by the monotonic clock, which nobody sets. That clock begins anew with each boot of the machine, so the
store notes of which boot its leases are. Under another one nobody can tell how much of them is left: each then lasts as
long again as the longest lease that this store ever granted, and none lasts longer. What was not out does not wait.

The wall clock says when an item is due. One that was set wrong for a moment and then back leaves moments behind that
are far ahead: `due_after` brings them back.

All times are µs. `boot` names a run of the machine (foundation/clock.py); empty: unknown, so never the same one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: A wall clock that moved by so much against the monotonic one was set; less is how clocks are kept right.
STEP: Final = 1_000_000
#: … beside what two clocks of one machine may part by in the time between two looks, a share of it.
DRIFT: Final = 100
#: The longest lease that a new store notes: a minute, though it granted none.
NEW_LONGEST: Final = 60_000_000
#: No delay is so long: what is due that far behind a clock that was set back was counted by the wrong clock. A year.
LONGEST_DELAY: Final = 366 * 86_400_000_000


class Noted(NamedTuple):
    """A store's note of its clocks, as it wrote it last.

    ahead    how far the wall clock was ahead of the monotonic one
    wall     the wall clock, then; so `wall` - `ahead` was the monotonic one
    longest  no lease was granted for longer
    closed   whether the run that noted it closed the store
    """

    boot: str
    ahead: int
    wall: int
    longest: int
    closed: bool


def same_run(noted: Noted, boot: str) -> bool:
    """Whether moments of the monotonic clock that were written then mean the same now."""
    return bool(boot) and noted.boot == boot


def lease_end(until: int, noted: Noted, boot: str, monotonic: int) -> int:
    """When a lease ends that is in the store as it is opened; `until` by the monotonic clock of the boot noted."""
    latest = monotonic + noted.longest
    return min(until, latest) if same_run(noted, boot) else latest


def everything_waits(noted: Noted, boot: str, *, durable: bool) -> bool:
    """Whether hand-outs may be missing in the store as it is opened, so that nothing may be handed out for the longest
    lease: it does not sync each write (`durable`), and the machine went down under it."""
    return not durable and not noted.closed and not same_run(noted, boot)


def set_back_by(noted: Noted, boot: str, ahead: int, wall: int) -> int:
    """By how much the wall clock was set back since, at least; 0: it was not."""
    if same_run(noted, boot):
        return max(0, -was_set(noted.ahead, ahead, (wall - ahead) - (noted.wall - noted.ahead)))
    return back if (back := noted.wall - wall) > STEP else 0


def was_set(before: int, ahead: int, passed: int) -> int:
    """By how much the wall clock was set, if it was `before` ahead of the monotonic one and is `ahead` of it after so
    long (by the monotonic clock); 0: it was not. What two clocks part by slowly is no step, however much it becomes:
    else each second of it would have all that waits begin so much too early."""
    moved = ahead - before
    return moved if abs(moved) > STEP + max(0, passed) // DRIFT else 0


def due_after(due: int, now: int, back: int) -> int:
    """When something is due, by a clock that was set back by so much and says `now`. What was due stays due; what is
    further ahead than any delay was counted by the clock as it was; the rest was to wait for its moment, and does."""
    if due <= now + back:
        return min(due, now)
    return due - back if back > LONGEST_DELAY else due
