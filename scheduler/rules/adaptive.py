"""Adaptive: how much a downstream takes, found out from its answers (FL12, FL14).

One limit for each downstream, whichever functions and sources call it, on the starts a second:

    measuring ──what passed in half a second──▶ open ──nothing passes, or it says until when──▶ closed
                                                  ▲                                               │ its time is over
                                                  └──one item ends well── probing ◀───────────────┘
                                                                            └──it fails: twice the wait──▶ closed

While it is open it is additive increase, multiplicative decrease (Chiu and Jain). It grows by a part of itself in a
second, or in the time that a run takes where that is longer, while at least 80 % of it is used. It shrinks to 0.9 or
less, when again to the share that passed, at most once in an *epoch*: what started before it last shrank says
nothing of what it is now. Beyond the mark at which it last shrank it grows faster and faster, as CUBIC does, since the
downstream takes more than it did. A breaker is the same limit at one probe.
"""

from __future__ import annotations

import math
from enum import StrEnum

from ...model.adaptive import Adaptive
from ...model.limits import Quota
from .limit import UNLIMITED, Limit

#: The key of the limit that accounts of tenants without one of their own share; it is no tenant's name.
REST = "*"
#: Seconds between two looks, and of the measurement after the first throttle.
LOOK, MEASURE = 0.1, 0.5
#: The longest wait that closes a downstream, seconds; one that is longer is its item's own, and a throttle like any.
LONGEST_CLOSED = 300.0
#: Seconds of the first wait for a probe, doubled up to the last.
FIRST_WAIT, LAST_WAIT = 1.0, 30.0
#: Throttles, and seconds over which they come with no item between that passed, that close it.
DRY, DRY_SECONDS = 10, 0.5
#: Part of an open limit that must be used so that it grows, and seconds over which its mean is taken, about.
USED, USED_OVER = 0.8, 1.0
#: Distance beyond its mark from which it grows faster: twice as fast each second, up to so much of itself a second.
BEYOND, FASTEST = 1.05, 0.6
#: One of which nothing is known yet grows so fast.
EAGER = 1.5
#: One decrease leaves at least so much.
DEEPEST = 0.6
#: Where it shrinks again within so many seconds, the share that passed counts, of so many ends in a look: what was held
#: up somewhere and came at once is throttled, too, and says less.
SOON, TELLING = 1.0, 10
#: Seconds of its rate that it lets start at once, and the part of its share with which a slow start begins.
BURST, FIRST_SHARE = 0.05, 0.1
#: Seconds without a throttle after which it is forgotten.
FORGOTTEN = 600.0


class DownstreamState(StrEnum):
    """The states of an adaptive limit. Measuring: it limits nothing yet. Probing: one item may start, or is out."""

    MEASURING = "measuring"
    OPEN = "open"
    CLOSED = "closed"
    PROBING = "probing"


class AdaptiveLimit(Limit):
    """The limit of one downstream, or of one tenant of it. Times are monotonic seconds.

    Invariants: `floor` ≤ `allowed` ≤ `ceiling`, and `rate` is at most that (a slow start holds it lower); closed, or
    while a probe is out, there is no room; while probing, one item starts before the probe has its verdict.

    state      where it is
    allowed    starts a second that it has found
    epoch      how often it shrank or opened; `epoch_at` is since when
    throttled  throttles it was told of, `shrank` how often it shrank for them
    why        what it was last told
    shrank_at  when it last shrank or closed, and `until` when a closed one may be probed
    """

    __slots__ = (
        "_bad",
        "_beyond_since",
        "_dry",
        "_dry_since",
        "_fresh",
        "_looked_at",
        "_mark",
        "_measured_from",
        "_numbers",
        "_out_at",
        "_passed",
        "_probe_at",
        "_probe_base",
        "_ramp",
        "_ramp_at",
        "_shut_at",
        "_started",
        "_throttled_at",
        "_used",
        "_wait",
        "allowed",
        "downstream",
        "epoch",
        "epoch_at",
        "shrank",
        "shrank_at",
        "state",
        "tenant",
        "throttled",
        "until",
        "why",
    )

    def __init__(self, downstream: str, tenant: str, numbers: Adaptive, now: float) -> None:
        account = "tenants beyond the bound, and none" if tenant == REST else f"tenant {tenant}"
        of = f"downstream {downstream}" + (f" × {account}" if tenant else "")
        super().__init__(of, Quota(downstream=downstream), now)
        self.downstream = downstream
        self.tenant = tenant
        self.state = DownstreamState.MEASURING
        self.allowed = math.inf
        self.epoch = 0
        self.epoch_at = -math.inf
        self.throttled = self.shrank = 0
        self.why = ""
        self.shrank_at = self.until = 0.0
        self._numbers = numbers
        self._looked_at = now
        self._measured_from = now
        self._throttled_at = now
        self._passed = self._bad = self._fresh = 0
        self._dry, self._dry_since = 0, now
        self._started = 0
        self._used = 0.0
        self._mark = math.inf
        self._beyond_since = math.inf
        self._wait = FIRST_WAIT
        self._ramp_at, self._ramp = -math.inf, 0.0
        self._shut_at = now
        self._probe_at = math.inf
        self._probe_base = 0
        self._out_at = math.inf  # when a probe was seen to be out

    # ---- what is said of it

    @property
    def shut(self) -> bool:
        """Whether nothing, or one probe, may start."""
        return self.state in (DownstreamState.CLOSED, DownstreamState.PROBING)

    @property
    def reservable(self) -> bool:
        """Whether a flow that waits for it may reserve its limits (FL5): False while it is closed, so that the flow
        keeps nothing else for itself."""
        return not self.shut

    def numbered(self, numbers: Adaptive, now: float) -> None:
        """Takes other numbers from now on."""
        self._numbers = numbers
        if self.allowed < math.inf:
            self.allowed = self._within(self.allowed)
            self._apply(now)

    def passed(self, count: int, started_at: float, now: float) -> None:
        """Counts items that ended without a throttle, the last of them started at `started_at`."""
        self._passed += count
        self._dry = 0
        if self._is_probe(started_at):
            self._open(now)

    def told(self, why: str, after: float | None, started_at: float, now: float) -> None:
        """Notes that it throttled an item that started then. `after`: seconds that it asked to wait."""
        self.throttled += 1
        self._throttled_at = now
        self.why = why
        self._bad += 1
        if not self._dry:
            self._dry_since = now
        self._dry += 1
        if after is not None and not 0 <= after <= LONGEST_CLOSED:  # nor what is no number
            after = None
        match self.state:
            case DownstreamState.CLOSED:
                if after is not None:
                    self.until = max(self.until, now + after)
            case DownstreamState.PROBING:
                if self._is_probe(started_at):
                    self._failed(now, after)
            case _:
                if started_at >= self.epoch_at:
                    self._fresh += 1
                    if after is not None:
                        if self.state is DownstreamState.OPEN:
                            self._shrink(now)
                        self._close(now, now + after)

    def unknown(self, started_at: float, now: float) -> None:
        """Notes that an item which started at `started_at` ended in a way that says nothing of it: if that was the
        probe, another one is."""
        if self._is_probe(started_at):
            self._await_probe(now)

    def ramp(self, now: float) -> None:
        """Lets its share rise from little: something that calls it came back."""
        if self.state is DownstreamState.OPEN:
            self._ramp_at, self._ramp = now, self._numbers.slow_start
            self._apply(now)

    def begin(self, now: float) -> None:
        """Opens it although it was never throttled, after functions that call it came back, so that its share rises
        from little."""
        self._open(now)

    def recounted(self, before: int) -> None:
        """Corrects its counts after running items were counted anew; `before`: how many it had."""
        self._started += self.running - before
        self._probe_base += self.running - before

    # ---- time

    def look(self, now: float) -> bool:
        """Lets time pass. Returns whether it has room that it had not."""
        if self.state is DownstreamState.CLOSED:
            if now < self.until:
                return False
            self.state = DownstreamState.PROBING
            self._await_probe(now)
        if self.state is DownstreamState.PROBING:
            return self._look_at_probe(now)
        return now - self._looked_at >= LOOK and self._look_at_open(now, now - self._looked_at)

    def next_look(self, now: float) -> float | None:
        """Time at which time alone changes something; None: not while nothing starts or ends."""
        if self.state is DownstreamState.CLOSED:
            return self.until
        if self.state is DownstreamState.PROBING:
            return self._out_at + self._numbers.probe_timeout if self._out_at < math.inf else None
        busy = self.running or self.sleepers or self._bad or now - self._ramp_at < self._ramp
        return self._looked_at + LOOK if busy or self.state is DownstreamState.MEASURING else None

    def forgettable(self, now: float) -> bool:
        """Whether nothing of it is worth remembering."""
        unused = self.state is DownstreamState.OPEN or not (self.running or self.sleepers)
        return unused and now - self._throttled_at >= FORGOTTEN

    def full(self, now: float) -> str:
        """The fill level, for people."""
        since = f", since it was throttled {now - self._throttled_at:.0f} s ago" if self.throttled else ""
        said = f" ({self.why})" if self.why else ""
        if self.state is DownstreamState.CLOSED:
            return f"it is closed for {max(0.0, self.until - now):.1f} s more, then one item probes it{since}{said}"
        if self.state is DownstreamState.PROBING:
            return f"it is closed, and one item probes it{since}{said}"
        if self.state is DownstreamState.MEASURING:
            return f"its capacity is being measured{since}{said}"
        return f"it adapts, now to {self.allowed:.4g} starts per second{since}{said}"

    # ---- steps

    def _look_at_open(self, now: float, elapsed: float) -> bool:
        self._looked_at = now
        started, self._started = self._started, self.ended + self.running
        speed = max(0, self._started - started) / elapsed  # what was not sent has not started after all
        part = 1 - math.exp(-elapsed / max(USED_OVER, 3 / max(self.rate, 0.01)))
        binds = self.sleepers and self.reserver is None
        self._used += ((1.0 if binds else speed / self.rate if self.rate else 0.0) - self._used) * part
        if self._dry >= DRY and now - self._dry_since >= DRY_SECONDS:
            self._close(now, now + self._wait)
            return False
        if self.state is DownstreamState.MEASURING:
            return self._measure(now)
        if self._fresh:
            self._shrink(now, elapsed)
        else:
            self._grow(now, elapsed)
        self._passed = self._bad = self._fresh = 0
        return True

    def _is_probe(self, started_at: float) -> bool:
        return self.state is DownstreamState.PROBING and started_at >= self._probe_at

    def _await_probe(self, now: float) -> None:
        self._out_at = math.inf
        self._probe_at = now
        self._probe_base = self.ended + self.running

    def _offer_probe(self) -> bool:
        self.concurrency = self.running + 1
        self.rate, self.tokens, self.at = 0.0, math.inf, math.inf
        return True

    def _look_at_probe(self, now: float) -> bool:
        if self._out_at < math.inf:
            if now - self._out_at >= self._numbers.probe_timeout:
                self.why = f"a probe did not end within {self._numbers.probe_timeout:g} s"
                self._failed(now, None)
            return False
        if self.ended + self.running > self._probe_base:
            self._out_at = now
            self.concurrency = 0
            return False
        return self._offer_probe()

    def _failed(self, now: float, after: float | None) -> None:
        self._wait = min(2 * self._wait, LAST_WAIT)
        self._close(now, now + (self._wait if after is None else after))

    def _close(self, now: float, until: float) -> None:
        if not self.shut:
            self._shut_at = now
        self.state = DownstreamState.CLOSED
        self.until = until
        self.shrank_at = now
        self.concurrency = 0
        self._dry = 0
        self._passed = self._bad = self._fresh = 0

    def _open(self, now: float) -> None:
        self.state = DownstreamState.OPEN
        self.concurrency = UNLIMITED
        if self.allowed == math.inf:
            self.allowed = self._within(max(1.0, self.running))
            self._mark = 0.0
        self._wait = FIRST_WAIT
        self._used = 1.0
        self._ramp_at = now if self._mark else -math.inf
        self._ramp = min(self._numbers.slow_start, now - self._shut_at)
        self._dry = 0
        self._passed = self._bad = self._fresh = 0
        self._begin_epoch(now)
        self._looked_at = now
        self._started = self.ended + self.running
        self._apply(now)

    def _measure(self, now: float) -> bool:
        """Opens the limit at the rate that passed while it limited nothing; False: too little passed to tell."""
        elapsed = now - self._measured_from
        if elapsed < MEASURE or (self._passed + self._bad < TELLING and elapsed < 10 * MEASURE):
            return False
        self.state = DownstreamState.OPEN
        self.allowed = self._mark = self._within(self._passed / elapsed)
        self.shrank += 1
        self.shrank_at = now
        self._used = 1.0
        self._passed = self._bad = self._fresh = 0
        self._begin_epoch(now)
        self._apply(now)
        return True

    def _shrink(self, now: float, elapsed: float = math.inf) -> None:
        ends, most = self._passed + self._bad, self._numbers.decrease
        soon = now - self.shrank_at < SOON and ends >= TELLING
        least = self.allowed * max(DEEPEST, self._passed / ends) if soon else self.allowed
        self._mark = self.allowed
        self.allowed = self._within(most * min(self.allowed, max(least, self._passed / elapsed)))
        self.shrank += 1
        self.shrank_at = now
        self._begin_epoch(now)
        self._apply(now)

    def _grow(self, now: float, elapsed: float) -> None:
        if now - self._ramp_at < self._ramp:
            self._apply(now)
            return
        if self._used < USED:
            self._beyond_since = math.inf
            self._apply(now)
            return
        part = self._numbers.increase
        if self._mark == 0.0:
            part = EAGER
        elif self.allowed > BEYOND * self._mark:
            self._beyond_since = min(self._beyond_since, now)
            part = max(part, min(FASTEST, part * 2 ** (now - self._beyond_since)))
        took = self.running / (self._used * self.rate)
        self.allowed = self._within(self.allowed * (1 + part * min(elapsed, 1.0) / max(1.0, took)))
        self._apply(now)

    def _begin_epoch(self, now: float) -> None:
        self.epoch += 1
        self.epoch_at = now
        self._beyond_since = math.inf

    def _within(self, rate: float) -> float:
        rate = max(self._numbers.floor, rate)
        return min(rate, self._numbers.ceiling) if self._numbers.ceiling else rate

    def _apply(self, now: float) -> None:
        """Sets the rate to the one that it has found, or in a slow start to a part of that."""
        if self.state is not DownstreamState.OPEN:
            return
        had_rate = bool(self.rate)
        if had_rate:
            self.refill(now)
        part = (now - self._ramp_at) / self._ramp if self._ramp else 1.0
        share = FIRST_SHARE + (1 - FIRST_SHARE) * min(1.0, part)
        self.rate = self.allowed * share
        self.burst = max(1.0, self.rate * BURST)
        self.tokens = min(self.tokens, self.burst) if had_rate else 0.0
        self.at = now
