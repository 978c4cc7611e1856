"""The time by which stores delete what is old: THE rule for everything that goes by its age alone.

A wall clock may be wrong for a moment (a time server's mistake, a machine that starts without its battery), and what
was deleted in that moment stays deleted. So nothing is deleted by the wall clock as it is told, but by a time that is
never ahead of the real one as far as anybody knows:

- it goes on with the monotonic clock, which nobody sets, and is never later than the wall clock;
- it follows the wall clock where that has kept step with the monotonic one for AGREED seconds;
- after a start it goes on from where the last run left it, so that a process which starts every hour deletes all the
  same, late by the time that it was down; with nothing noted it begins in 1970, where nothing is old enough.

A wrong clock thus deletes nothing, however often a process starts with it, until it was wrong without a change for
AGREED seconds. Bounds in bytes and in rows need no clock and hold meanwhile.

All times are µs. `boot` names a run of the machine (foundation/clock.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..foundation.clock import SYSTEM_CLOCK, Clock, boot
from ..model.reopening import Trouble
from ..model.units import duration_text
from .queue.lease_clock import was_set

#: µs for which the wall clock must have kept step with the monotonic one before it is believed: 6 hours.
AGREED: Final = 6 * 3_600_000_000
#: Seconds by which the trusted time may be behind the wall clock before operators are told: an hour.
TOLD: Final = 3600
#: µs: a trusted time before this one was never the wall clock's.
YEAR: Final = 366 * 86_400_000_000
#: The name of this host's clock among the clocks of `TrustedTimes`.
HOST: Final = "this host"
#: The file beside the databases that remembers the trusted time; and seconds between two notes.
NOTE, PERIOD = "trusted_time.json", 60.0


class Trusted(NamedTuple):
    """The trusted time, and how far the wall clock is believed.

    time      never ahead of the real time, as far as is known
    at        the monotonic clock at that time
    ahead     how far the wall clock was ahead of the monotonic one when they began to agree
    since     the monotonic clock when they began to agree
    believed  whether they have agreed for AGREED
    """

    time: int
    at: int
    ahead: int
    since: int
    believed: bool


def begun(time: int, wall: int, monotonic: int) -> Trusted:
    """The trusted time at a start, after which both clocks have to agree anew. `time`: the trusted time of the run
    before; 0: nothing is known; the wall clock's where nothing is stored yet."""
    return Trusted(min(time, wall), monotonic, wall - monotonic, monotonic, False)


def looked(before: Trusted, wall: int, monotonic: int) -> Trusted:
    """The trusted time at another look at both clocks."""
    _, _, ahead, since, believed = before
    passed = monotonic - since
    if was_set(ahead, wall - monotonic, passed):
        ahead, since, believed = wall - monotonic, monotonic, False
    elif passed >= AGREED:  # from here on they are compared anew: slow drift is no step, however much it adds up to
        ahead, since, believed = wall - monotonic, monotonic, True
    time = wall if believed else min(before.time + monotonic - before.at, wall)
    return Trusted(time, monotonic, ahead, since, believed)


#: Nothing is known: the time before which nothing can have been stored.
NOTHING: Final = begun(0, 0, 0)


class TrustedTime:
    """The trusted time of one clock: the host's, or a server's, which tells its time with each answer. As made, it
    believes the clock, as is right where nothing is stored yet; `begin` says otherwise."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, boot: Callable[[], str] = boot) -> None:
        self._clock, self._boot = clock, boot()
        self._wall = int(clock.wall() * 1e6)
        self._trusted = begun(self._wall, self._wall, self._monotonic())

    def _monotonic(self) -> int:
        return int(self._clock.monotonic() * 1e6)

    def begin(self, boot: str = "", before: Trusted = NOTHING) -> None:
        """Goes on from the note of the run before. NOTHING: nothing is known, so nothing is old until the clock is
        believed."""
        wall, monotonic = int(self._clock.wall() * 1e6), self._monotonic()
        same_run = bool(boot) and boot == self._boot and before.at <= monotonic
        self._trusted = looked(before, wall, monotonic) if same_run else begun(before.time, wall, monotonic)

    def micros(self, wall: int | None = None) -> int:
        """µs: what is old by this time may be deleted. `wall`: the time that the server told just now."""
        self._wall = int(self._clock.wall() * 1e6) if wall is None else wall
        self._trusted = looked(self._trusted, self._wall, self._monotonic())
        return self._trusted.time

    def seconds(self) -> float:
        """Seconds by the host's clock: what is old by this time may be deleted."""
        return self.micros() / 1e6

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever known of the clock."""
        return self._trusted.time < YEAR

    @property
    def carried_on(self) -> int:
        """The trusted time (µs) as the monotonic clock carried it on since the last look, for reads that ask no server
        for its time."""
        return self._trusted.time + self._monotonic() - self._trusted.at

    @property
    def note(self) -> tuple[str, Trusted]:
        """The boot, and the trusted time as it was last worked out, for the next run."""
        return self._boot, self._trusted

    def trouble(self, whose: str) -> Trouble | None:
        """The trouble for operators while deletions wait. `whose` names the clock."""
        time, at, _, since, _ = self._trusted
        behind = round((self._wall - time) / 1e6)
        if behind <= TOLD:
            return None
        waited = (at - since) // 1_000_000
        ahead = (
            f"it is {duration_text(behind)} ahead of the time that is known to have passed"
            if not self.is_new
            else "no run before has noted that it was right"
        )
        return Trouble(
            "stores",
            self._clock.wall() - waited,
            f"deletions by age wait: the clock of {whose} is not believed yet, since {ahead}. They go on when it has "
            f"kept step with the monotonic clock for {duration_text(AGREED // 1_000_000)}; bounds in bytes hold",
            todo=f"see that the clock of {whose} is right (date -u), and set it if not; if it is right, do nothing",
        )


def server_time(clock: Clock, times: dict[str, TrustedTime] | None, server: str) -> TrustedTime:
    """The trusted time of a server's clock; `times` takes it up under the name of the server. A store of that server
    gives it what the server told before it deletes."""
    made = TrustedTime(clock)
    if times is not None:
        times[f"the {server}"] = made
    return made


class TrustedTimes:
    """The trusted times of the clocks by which one data directory's stores delete, by whose clock it is, and the file
    there that remembers them."""

    def __init__(self, folder: Path, times: Mapping[str, TrustedTime], clock: Clock) -> None:
        self._path, self._times, self._clock = folder / NOTE, times, clock
        self._noted_at = -math.inf
        self._told = set[str]()  # clocks of which operators are told though nothing is known of them

    def begin(self, *, fresh: bool, here: bool = True) -> None:
        """Goes on from the notes of the last run. `fresh`: nothing is stored yet that a wrong clock could delete;
        `here`: something is stored in this folder."""
        known = self._read()
        for name, each in self._times.items():
            if name in known or not fresh:
                each.begin(*known.get(name, ()))
        self._noted_at, self._told = -math.inf, {HOST} if here else set()

    def _read(self) -> dict[str, tuple[str, Trusted]]:
        try:
            found = {}
            for name, (boot, (time, at, ahead, since, believed)) in json.loads(self._path.read_text()).items():
                found[name] = str(boot), Trusted(int(time), int(at), int(ahead), int(since), bool(believed))
            return found
        except (OSError, ValueError, TypeError, AttributeError):
            return {}  # absent, or damaged by a power cut: nothing is known then, and nothing is deleted for AGREED

    def note(self, *, now: bool = False) -> None:
        """Notes the trusted times, unless that was done just before (`now`: even so). Raises OSError."""
        moment = self._clock.monotonic()
        if moment < self._noted_at + PERIOD and not now:
            return
        self._write({name: each.note for name, each in self._times.items()})
        self._noted_at = moment

    def _write(self, notes: Mapping[str, tuple[str, Trusted]]) -> None:
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(notes))
        beside.replace(self._path)

    def troubles(self) -> list[Trouble]:
        """The troubles for operators while deletions wait. A clock that is new to this node is none: nobody can tell
        how long there has been something to delete."""
        found = [each.trouble(name) for name, each in self._times.items() if name in self._told or not each.is_new]
        return [trouble for trouble in found if trouble is not None]
