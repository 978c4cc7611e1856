"""Lease ends that do not depend on the wall clock: THE rule for a store that counts leases by its own host's clocks.

A lease ends by the monotonic clock, which nobody sets. That clock starts again with each boot of the machine, so the
store notes the boot of its leases. After another boot nobody can tell how much of a lease is left: each lease then
lasts again for as long as the longest lease that this store ever granted, and none lasts longer. Items that were not
leased need not wait.

The wall clock says when an item is due. After it was wrong for a moment and was set back, some due times are far in the
future: `due_after` brings them back.

All times are µs. `boot` names a run of the machine (foundation/clock.py); empty: unknown, which never equals another.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: A wall clock that moved this far against the monotonic one was set; smaller moves are normal corrections.
STEP: Final = 1_000_000
#: … plus the drift of two clocks of one machine between two looks: one part in so many.
DRIFT: Final = 100
#: The longest lease that a new store notes, although it granted none: a minute.
NEW_LONGEST: Final = 60_000_000
#: Longer than any delay, a year: a due time this far ahead of a clock that was set back was counted by the wrong clock.
LONGEST_DELAY: Final = 366 * 86_400_000_000


class Noted(NamedTuple):
    """A store's last note of its clocks.

    ahead    how far the wall clock was ahead of the monotonic one
    wall     the wall clock at that time; so `wall` - `ahead` was the monotonic one
    longest  no lease was granted for longer
    closed   whether the run that wrote the note closed the store
    """

    boot: str
    ahead: int
    wall: int
    longest: int
    closed: bool


def same_run(noted: Noted, boot: str) -> bool:
    """Whether times of the monotonic clock that were noted then still have the same meaning."""
    return bool(boot) and noted.boot == boot


def lease_end(until: int, noted: Noted, boot: str, monotonic: int) -> int:
    """End of a lease that is found when the store is opened. `until` is by the monotonic clock of the noted boot."""
    latest = monotonic + noted.longest
    return min(until, latest) if same_run(noted, boot) else latest


def everything_waits(noted: Noted, boot: str, *, durable: bool) -> bool:
    """Whether the opened store may lack hand-outs, so that nothing may be handed out for the longest lease: the store
    does not sync each write (`durable` is false), and the machine went down while it was open."""
    return not durable and not noted.closed and not same_run(noted, boot)


def set_back_by(noted: Noted, boot: str, ahead: int, wall: int) -> int:
    """µs by which the wall clock was set back since the note, at least; 0: it was not set back."""
    if same_run(noted, boot):
        return max(0, -was_set(noted.ahead, ahead, (wall - ahead) - (noted.wall - noted.ahead)))
    return back if (back := noted.wall - wall) > STEP else 0


def was_set(before: int, ahead: int, passed: int) -> int:
    """µs by which the wall clock was set; 0: it was not. It was `before` ahead of the monotonic clock and is `ahead` of
    it now, after `passed` by the monotonic one. Slow drift is no step, however much it adds up to: otherwise each
    second of drift would start all waiting items too early by as much."""
    moved = ahead - before
    return moved if abs(moved) > STEP + max(0, passed) // DRIFT else 0


def due_after(due: int, now: int, back: int) -> int:
    """New due time of an item, by a clock that was set back by `back` and now says `now`. Items that were due stay due.
    A due time further ahead than any delay was counted by the wrong clock. Every other item waits for its time as
    before."""
    if due <= now + back:
        return min(due, now)
    return due - back if back > LONGEST_DELAY else due
