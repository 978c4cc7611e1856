"""Retry: may a failed workload be tried again, and after how long. THE rule.

Presets: `exponential` with a fifth of jitter (the default: 5 s doubling to a cap of 6 h, 20 attempts, about two days),
`quartic` (delayed_job's n^4 + 5 s) and `list` (delays of your own, the last one repeating).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .backoff import doubled
from .errors import InvalidRequest
from .units import seconds

BACKOFFS = ("exponential", "quartic", "list")


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy. Durations are seconds or text ("5s", "6h").

    max_attempts   attempts in all, the first one included; 1 never retries (default 20)
    backoff        exponential | quartic | list
    first, max     exponential's first delay and cap (default 5 s, 6 h)
    delays         the list for backoff="list"; attempt n waits delays[n-1], the last one repeats
    jitter         share of the exponential delay that is random, 0 to 1 (default 0.2)
    max_crashes    executions that took their process down before the workload is a dead letter (default 3)
    from_due       count the delay from when the attempt was due rather than from its end (the DJ rule)
    """

    max_attempts: int = 20
    backoff: str = "exponential"
    first: float | str = 5.0
    max: float | str = 6 * 3600.0
    delays: tuple[float | str, ...] = ()
    jitter: float = 0.2
    max_crashes: int = 3
    from_due: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= 10_000:
            raise InvalidRequest(f"retry.max_attempts is {self.max_attempts}: expected 1 to 10000")
        if self.backoff not in BACKOFFS:
            raise InvalidRequest(f"retry.backoff is {self.backoff!r}: expected one of {', '.join(BACKOFFS)}")
        if self.backoff == "list" and not self.delays:
            raise InvalidRequest('retry.backoff is "list" but retry.delays is empty: give at least one delay')
        if not 0 <= self.jitter <= 1:
            raise InvalidRequest(f"retry.jitter is {self.jitter}: expected 0 to 1")
        if not 1 <= self.max_crashes <= 100:
            raise InvalidRequest(f"retry.max_crashes is {self.max_crashes}: expected 1 to 100")
        object.__setattr__(self, "first", seconds(self.first))
        object.__setattr__(self, "max", seconds(self.max))
        object.__setattr__(self, "delays", tuple(seconds(delay) for delay in self.delays))


def bounded(policy: Retry, most: int) -> Retry:
    """The policy of an item that may fail at most so often, crashes likewise; 0: as often as its function says."""
    if not 0 < most < max(policy.max_attempts, policy.max_crashes):
        return policy
    attempts, crashes = min(policy.max_attempts, most), min(policy.max_crashes, most)
    return replace(policy, max_attempts=attempts, max_crashes=crashes)


DEFAULT_RETRY = Retry()


def may_retry(policy: Retry, attempts: int) -> bool:
    """Whether a workload that has failed `attempts` times gets another attempt."""
    return attempts < policy.max_attempts


def may_retry_crash(policy: Retry, crashes: int) -> bool:
    """Whether a workload that was running in `crashes` processes that died gets another execution."""
    return crashes < policy.max_crashes


def delay_after(policy: Retry, attempts: int, random: Callable[[], float] | None = None) -> float:
    """Seconds to wait after the `attempts`-th failed attempt (1 or more).

    `random` returns a number in [0, 1); without it there is no jitter (goldens and tests).
    """
    if policy.backoff == "quartic":
        return float(attempts**4 + 5)
    if policy.backoff == "list":
        delays = policy.delays
        return float(delays[attempts - 1] if attempts < len(delays) else delays[-1])
    base = doubled(float(policy.first), float(policy.max), attempts - 1)
    if random is None or not policy.jitter:
        return base
    return base * (1 - policy.jitter / 2 + policy.jitter * random())
