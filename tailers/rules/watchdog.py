"""Watchdog of progress: a tailer with work before it that gets nothing done for too long is unhealthy, whatever its
parts say.

It looks at the one number to which everything comes down: how many items got on (done, parked, dead, or an attempt that
counted). Held, thrown back and clogged ones did not. The cause is a guess: the first that fits, on the way from the
source to the worker.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class StallCause(StrEnum):
    """Likely causes of a stall: nothing gets on. Codes never change meaning."""

    NONE = ""
    FAILED = "failed"  # the tailer ended for a reason that trying again cannot mend
    BY_HAND = "by_hand"  # somebody must mend something; it is tried again until then
    SOURCE = "source"  # the source cannot be reached
    STORE = "store"  # a store or the delay service refuses a write
    SCHEDULER = "scheduler"  # no scheduler can be reached
    STARTING = "starting"  # the stream's former owner may still be at work
    PAUSED = "paused"  # an operator paused this tailer
    CLOGGED = "clogged"  # the function is broken
    GATE = "gate"  # an operator's gate is closed
    NO_WORKER = "no_worker"  # nobody runs the function
    SLOW = "slow"  # items are out and none ends
    HELD = "held"  # items that were read are held
    NO_CREDIT = "no_credit"  # the scheduler wants nothing


class WatchdogFacts(NamedTuple):
    """Facts of a tailer. Texts say why, empty: it is not so; `lag` -1: unknown; `oldest`: seconds that the oldest item
    is out."""

    completions: int
    lag: int = 0
    in_flight: int = 0
    held: int = 0
    oldest: float = 0.0
    failed: str = ""
    by_hand: str = ""
    source: str = ""
    store: str = ""
    scheduler: str = ""
    starting: str = ""
    standing_by: bool = False
    paused: bool = False
    clogged: str = ""
    gate: str = ""
    no_worker: str = ""
    held_because: str = ""


class WatchdogVerdict(NamedTuple):
    """The health of a tailer. `idle`: seconds without a completion although there was work."""

    healthy: bool = True
    idle: float = 0.0
    cause: StallCause = StallCause.NONE
    why: str = ""


class Watchdog:
    """The watchdog of one tailer. `bound`: seconds. Invariant: `_since` is the time at which something last got on, or
    at which there last was nothing to do."""

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._completions = -1
        self._since = 0.0

    def look(self, facts: WatchdogFacts, now: float) -> WatchdogVerdict:
        """The health of the tailer at `now` (monotonic seconds). A tailer that failed for good, or waits for somebody's
        hand, is unhealthy at once."""
        if facts.failed:
            return WatchdogVerdict(False, 0.0, StallCause.FAILED, facts.failed)
        if facts.by_hand:
            return WatchdogVerdict(False, 0.0, StallCause.BY_HAND, facts.by_hand)
        if facts.standing_by:
            self._since = now
        busy = facts.lag > 0 or facts.in_flight > 0 or facts.held > 0
        if facts.completions != self._completions or not busy:
            # A source that cannot be reached may have work: nobody knows.
            if facts.completions != self._completions or not (facts.source or facts.starting):
                self._since = now
            self._completions = facts.completions
        idle = now - self._since
        if idle < self._bound:
            return WatchdogVerdict(True, idle)
        return WatchdogVerdict(False, idle, *likely(facts))


def likely(facts: WatchdogFacts) -> tuple[StallCause, str]:
    """The likely cause, with a sentence for people."""
    found = [
        (StallCause.SOURCE, facts.source),
        (StallCause.STARTING, facts.starting),
        (StallCause.PAUSED, "an operator paused this tailer" if facts.paused else ""),
        (StallCause.SCHEDULER, facts.scheduler),
        (StallCause.STORE, facts.store),
        (StallCause.CLOGGED, facts.clogged),
        (StallCause.GATE, facts.gate),
        (StallCause.NO_WORKER, facts.no_worker),
        (StallCause.SLOW, _slow(facts)),
        (StallCause.HELD, f"{facts.held} items are held: {facts.held_because}" if facts.held else ""),
    ]
    nothing = (StallCause.NO_CREDIT, "the scheduler grants no credit: its workers are full, or it is starting")
    return next(((cause, why) for cause, why in found if why), nothing)


def _slow(facts: WatchdogFacts) -> str:
    if not facts.in_flight:
        return ""
    return (
        f"{facts.in_flight} items are out, the oldest for {facts.oldest:.0f} s: "
        "their function is slow, or every worker that runs it is busy"
    )
