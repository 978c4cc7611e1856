"""Clog, a circuit breaker: is an item poison, or is its function broken, and when may a broken one be tried (law 7)?

Evidence is how *first attempts* fail, and any attempt succeeds: an item that fails again says nothing new, and one that
is well the second time says that its function works. An attempt that asks for another one (`RetryLater`), or for a wait
(`Throttled`) is no evidence. It is counted for one function over all sessions, since one source alone cannot tell a bad
item from a bad day.

    healthy ──first attempts fail──▶ frozen ──a probe starts──▶ probing ──it succeeds──▶ healthy
                                       ▲────────it fails: twice the wait──┘

A probe is an item of any attempt; any other one that started since the freeze (somebody waits for it) counts as such.
`passing` is the share of this evidence that is good, over about the last `outcomes` of them (each weighs 1/20 of what
is known); `usual` is the same over fifty times as many. A function freezes when `passing` is down to a tenth *and* to
the cube of what is usual for it, which is so little that chance does not bring it about. With the defaults that takes
45 failures in a row of a function that was well. One failing item in five stays far from it, whatever the order within
a hundred. A function that always fails eleven times in twelve is frozen at first; each time it freezes again soon, half
as much counts as usual, so it is left alone in the end. A key that fails again and again (items with an ordering key)
weighs an eighth after its first failure: a poisoned key is not an outage. A process that died is one failure however
many items ran in it (evidence.py), since only one of them can have ended it.

The estimate is an exponentially weighted mean, the waits of probes are those of a circuit breaker (M. Nygard, Release
It!) with doubling.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

#: `usual` remembers this many times as many outcomes as `passing`.
USUAL = 50
#: A further failure of a key that failed weighs this much.
AGAIN = 0.125
#: Failing keys remembered; the oldest go first.
KEYS = 256
#: Share of attempts that a function is assumed to pass when it has just thawed. While frozen, it thaws by itself
#: at this share: items that were still running end well, so the function is not broken.
HALF = 0.5
#: An item that fails as the probe this often in a row is the only one there is: nothing is protected by the freeze.
ALONE = 3


class ClogState(StrEnum):
    """Frozen: nothing is out. Probing: one item is."""

    HEALTHY = "healthy"
    FROZEN = "frozen"
    PROBING = "probing"


class ClogLimits(NamedTuple):
    """The sizes of the breaker. `share` of the last first attempts, about `outcomes` of them, must fail, with so many
    seen within `window` seconds: ten minutes of a slow function's failures are no sign. Probes wait `first_probe`
    seconds after the freeze, then twice as long each time up to `last_probe`: recovery is seen after no more than the
    outage took so far."""

    share: float = 0.9
    outcomes: int = 20
    window: float = 300.0
    first_probe: float = 1.0
    last_probe: float = 30.0


class Clog:
    """One function. Times are monotonic seconds. Bounded: some numbers and KEYS keys.

    Invariant: `state` is not healthy exactly when `since` is set; `out_since` is set only while probing.
    """

    __slots__ = (
        "_after",
        "_alone",
        "_at",
        "_failed_at",
        "_keys",
        "_last_id",
        "_limits",
        "_next",
        "_out_since",
        "_wait",
        "passing",
        "seen",
        "since",
        "usual",
    )

    def __init__(self, limits: ClogLimits, now: float) -> None:
        self._limits = limits
        self.passing = 1.0
        self.usual = 1.0
        self.seen = 0.0  # attempts within the window, about
        self.since: float | None = None
        self._at = self._failed_at = now
        self._keys: dict[str, None] = {}
        self._wait = limits.first_probe
        self._next = 0.0
        self._out_since: float | None = None
        self._last_id = ""
        self._alone = 0
        self._after: float | None = None  # attempts since it thawed

    @property
    def state(self) -> ClogState:
        """The state now."""
        if self.since is None:
            return ClogState.HEALTHY
        return ClogState.FROZEN if self._out_since is None else ClogState.PROBING

    def note(self, passed: int, failed: Iterable[str], now: float) -> None:
        """Counts attempts that ended, in any order: so many well, and first ones that ended badly, with these ordering
        keys (empty: none)."""
        limits = self._limits
        bad = sum([self._weight(key) for key in failed])
        count = passed + bad
        if not count:
            return
        self.seen = self.seen * max(0.0, 1 - (now - self._at) / limits.window) + count
        self._at = now
        if bad:
            self._failed_at = now
        share, least = passed / count, limits.outcomes
        self.passing = share + (self.passing - share) * (1 - 1 / least) ** count
        if self.since is None and self.seen >= least and self.passing <= min(1 - limits.share, self.usual**3):
            self._freeze(now)
        elif self.since is not None and self.passing >= HALF:
            self._thaw()
        if self.since is None:
            self._after = None if self._after is None else self._after + count
            self.usual = share + (self.usual - share) * (1 - 1 / (USUAL * least)) ** count

    def may_probe(self, now: float) -> bool:
        """Whether an item may start now although the function is frozen. One at a time; one that is out for longer
        than the longest wait does not keep the next one back."""
        return self.since is not None and now >= self.next_probe()

    def next_probe(self) -> float:
        """Time at which `may_probe` will say yes."""
        if self._out_since is None:
            return self._next
        return max(self._next, self._out_since + self._limits.last_probe)

    def probe(self, now: float) -> None:
        """Notes an item that starts as the probe."""
        self._out_since = now
        self._next = now + self._wait

    def probed(self, id: str, well: bool | None, now: float) -> None:
        """Notes the end of the probe: well, badly, or in a way that says nothing (None)."""
        self._out_since = None
        if self.since is None:
            return
        if well:
            self._thaw()
        elif well is None:
            self._next = now + self._wait
        else:
            self._wait = min(2 * self._wait, self._limits.last_probe)
            self._next = now + self._wait
            self._alone = self._alone + 1 if id == self._last_id else 1
            self._last_id = id
            if self._alone >= ALONE:
                self._thaw()

    def forgettable(self, now: float) -> bool:
        """Whether nothing of it is worth remembering: it is well, and nothing of it failed for a window."""
        return self.since is None and now - self._failed_at >= self._limits.window

    def _freeze(self, now: float) -> None:
        if self._after is not None and self._after < USUAL * self._limits.outcomes:
            self.usual /= 2
        self.since = now
        self._wait = self._limits.first_probe
        self._next = now + self._wait
        self._out_since, self._last_id, self._alone = None, "", 0

    def _thaw(self) -> None:
        self.since = self._out_since = None
        self._after = 0.0
        self.passing = max(self.passing, HALF)
        self._keys.clear()

    def _weight(self, key: str) -> float:
        if not key:
            return 1.0
        known = key in self._keys
        self._keys.pop(key, None)
        self._keys[key] = None
        if len(self._keys) > KEYS:
            del self._keys[next(iter(self._keys))]
        return AGAIN if known else 1.0
