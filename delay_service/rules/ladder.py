"""Ladder (fixed-delay retry queues): which fixed waits make an arbitrary delay, as a chain of rungs, one hop at a time.

The idea is that of asynchronous tiers built on fixed-delay streams (Uber's and Meta's): a stream whose items all wait
the same time is a plain log, of which only the head is ever looked at. Any other delay is a chain of such waits.

The rule. An item is parked with a due time and a latest time, due + max(smallest rung, 5 % of the whole delay). Each
hop is decided from what remains *now*, so a move that came late shortens the rest of the chain:

- never early: an item leaves the ladder only when its due time has passed;
- the bound: the waits of a chain add up to no more than the latest time, as long as moves are prompt;
- few hops: where each rung divides the next (the default ladder) taking the longest rung that still fits is optimal;
  other ladders are searched, within a budget, and never do worse than that.

Why a chain never gets stuck. Invariant: while an item is not due, latest - now ≥ smallest rung. It holds when parked
(the tolerance is at least the smallest rung), and a hop over rung r ≤ latest - now leaves it due, or not due with the
same tolerance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...model.errors import ConfigError

DEFAULT_RUNGS = (1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 21_600.0)
#: Rungs of one ladder at most: each is a stream with a head to look at.
MAX_RUNGS = 16
#: The share of a delay by which it may be late, when that is more than the smallest rung.
TOLERANCE = 0.05
#: Remaining waits below this are waited for where the item is: another rung would be a hop for less than a tick.
GRAIN = 0.001
#: Steps of the search for a shorter chain, per decision (about 0.1 ms): only ladders whose rungs do not nest search.
SEARCH_STEPS = 300


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs in seconds, rising. Invariants (checked when made): 1 to MAX_RUNGS, all positive, finite, rising."""

    rungs: tuple[float, ...] = DEFAULT_RUNGS
    _nested: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rungs = self.rungs
        if not 1 <= len(rungs) <= MAX_RUNGS:
            raise ConfigError(f"rungs: {len(rungs)} given; expected 1 to {MAX_RUNGS} waits, such as [1s, 5s, 30s]")
        if not all(math.isfinite(rung) and rung > 0 for rung in rungs):
            raise ConfigError(f"rungs: {_texts(rungs)}: every wait must be more than 0")
        if any(after <= before for before, after in itertools.pairwise(rungs)):
            raise ConfigError(f"rungs: {_texts(rungs)}: each wait must be longer than the one before it")
        nested = all(math.fmod(after, before) == 0 for before, after in itertools.pairwise(rungs))
        object.__setattr__(self, "_nested", nested)

    def tolerance(self, delay: float) -> float:
        """Seconds by which an item that is to wait `delay` seconds may be late."""
        return max(self.rungs[0], TOLERANCE * delay)

    def latest(self, due: float, now: float) -> float:
        """The latest time of an item that is parked now."""
        return due + self.tolerance(max(0.0, due - now))

    def next_rung(self, due: float, latest: float, now: float) -> int | None:
        """The index of the rung that the item waits in next; None: it is due.

        An item without its tolerance left (its latest time is from another ladder) takes the smallest rung.
        """
        remaining = due - now
        if remaining <= 0:
            return None
        room = max(latest - now, remaining)
        longest = self._longest(room)
        if self._nested or longest == 0 or self.rungs[longest] >= remaining:
            return longest
        return self._search(remaining, room, longest)

    def _longest(self, room: float) -> int:
        """The longest rung that fits; the smallest one if none does."""
        index = len(self.rungs) - 1
        while index > 0 and self.rungs[index] > room:
            index -= 1
        return index

    def _search(self, remaining: float, room: float, longest: int) -> int:
        """The longest rung of a shortest chain whose waits add up to between `remaining` and `room`."""
        search = _Search(self.rungs[: longest + 1][::-1], self._greedy_hops(remaining, room))
        search.look(0, remaining, room, 0, None)
        return longest if search.first is None else longest - search.first

    def _greedy_hops(self, remaining: float, room: float) -> int:
        hops = 0
        while remaining > 0:
            longest = self.rungs[self._longest(room)]
            # As many of it as fit, but the last of them may already be enough.
            count = max(1, min(math.floor(room / longest), math.ceil(remaining / longest)))
            hops += count
            remaining -= count * longest
            room -= count * longest
        return hops

    def release_at(self, entered: float, rung: int, due: float) -> float:
        """Time at which an item that entered a rung at `entered` leaves it: its wait later, or when it is due, if that
        is less than GRAIN after that. All are times of one clock."""
        leaves = entered + self.rungs[rung]
        return due if leaves < due <= leaves + GRAIN else leaves


class _Search:
    """The fewest waits that add up to between what remains and what there is room for: how many of the longest, how
    many of the next one, and so on, by branch and bound (Land and Doig, 1960).

    Invariant: `first` is the place of the longest wait of a chain of `best` hops, None while no chain is shorter than
    the one that is known.
    """

    def __init__(self, waits: Sequence[float], known: int) -> None:
        self._waits = waits  # falling
        self._steps = SEARCH_STEPS
        self.best = known
        self.first: int | None = None

    def look(self, place: int, remaining: float, room: float, hops: int, first: int | None) -> None:
        """Goes on with a chain of so many hops, whose longest wait is `first`, by waits from `place` on."""
        wait, last = self._waits[place], place + 1 == len(self._waits)
        for count in range(min(math.floor(room / wait), math.ceil(remaining / wait)), -1, -1):
            self._steps -= 1
            rest = remaining - count * wait
            # With fewer of this one the shorter ones are no fewer, so nothing better comes in this loop.
            needed = hops + count + (0 if rest <= 0 else math.inf if last else math.ceil(rest / self._waits[place + 1]))
            if needed >= self.best or self._steps <= 0:
                return
            begun = place if first is None and count else first
            if rest <= 0:
                self.best, self.first = hops + count, begun
            else:
                self.look(place + 1, rest, room - count * wait, hops + count, begun)


def _texts(rungs: Sequence[float]) -> str:
    return ", ".join(f"{rung:g} s" for rung in rungs)
