"""The arithmetic of leases (L1 and L2): grants are clamped, waits are stretched.

Every host has a monotonic clock that drifts by at most `rho`; D = (1 + rho) / (1 - rho) is how far two of them part.
Safety comes from `grant_*` and `wait_*`; the sizes only make room for renewals to arrive (liveness).
All times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .errors import ConfigError


@dataclass(frozen=True, slots=True)
class LeaseSizes:
    """Heartbeat, allowances and the three leases. Invariant (checked when made): the inequalities of L2."""

    heartbeat: float = 5.0
    round_trip: float = 2.0
    kill_margin: float = 2.0
    rho: float = 0.01
    worker: float = 18.0
    scheduler: float = 28.0
    source: float = 36.0

    def __post_init__(self) -> None:
        if min(self.heartbeat, self.round_trip, self.kill_margin) <= 0 or not 0 <= self.rho < 0.5:
            raise ConfigError("leases: heartbeat, round_trip and kill_margin must be positive, rho within 0 and 0.5")
        r = self.round_trip * (1 + self.rho)
        k = self.kill_margin * (1 + self.rho)
        for name, least in (
            ("worker", self.drift * (3 * self.heartbeat + r) + self.kill_margin * self.rho),
            ("scheduler", self.drift * self.worker + k + self.heartbeat + r),
            ("source", self.drift * self.scheduler + self.heartbeat + r),
        ):
            if getattr(self, name) < least - 1e-9:
                raise ConfigError(
                    f"leases.{name} is {getattr(self, name):g} s but must be at least {least:.2f} s, so that three "
                    f"heartbeats of {self.heartbeat:g} s can fail before it ends: raise leases.{name} or lower "
                    "leases.heartbeat"
                )

    @property
    def drift(self) -> float:
        """D: one second by the clock of a host may be this many by another's."""
        return (1 + self.rho) / (1 - self.rho)

    @property
    def granted_to_worker(self) -> float:
        """The longest grant to a worker: a scheduler that waits for it is done `worker + kill_margin` later by its own
        clock, so the stretch of `wait_for_worker` is taken off here. Items of a lost host start elsewhere by then."""
        return (self.worker - self.kill_margin * self.rho) / self.drift

    @property
    def by_name(self) -> dict[str, float]:
        """Every size by its name in leases.yaml."""
        return asdict(self)

    @classmethod
    def of_heartbeat(cls, heartbeat: float) -> LeaseSizes:
        """The default proportions scaled to another heartbeat: 0.5 s gives leases of 1.8, 2.8 and 3.6 s."""
        scale = heartbeat / 5.0
        return cls(heartbeat, 2 * scale, 2 * scale, 0.01, 18 * scale, 28 * scale, 36 * scale)


def grant_to_scheduler(sizes: LeaseSizes, still_held: float) -> float:
    """The lease, in seconds, that a tailer may grant a scheduler while it holds its source for `still_held` more
    seconds (0: none)."""
    return max(0.0, min(sizes.scheduler, still_held / sizes.drift))


def grant_to_worker(sizes: LeaseSizes, still_held: float) -> float:
    """The lease, in seconds, that a scheduler may grant a worker while it holds a session for `still_held` more seconds
    (0: none)."""
    return max(0.0, min(sizes.granted_to_worker, (still_held - sizes.kill_margin * (1 + sizes.rho)) / sizes.drift))


def is_enough_to_start(sizes: LeaseSizes, still_held: float) -> bool:
    """Whether a scheduler that holds a session for `still_held` more seconds starts its items. With less than a
    heartbeat no renewal comes in time, and a lease that ends takes the whole process, with all that runs there."""
    return grant_to_worker(sizes, still_held) >= sizes.heartbeat


def wait_for_scheduler(sizes: LeaseSizes, granted: float) -> float:
    """Seconds that a tailer waits, after its last grant of `granted` seconds, before it hands the items out again."""
    return sizes.drift * granted


def wait_for_worker(sizes: LeaseSizes, granted: float) -> float:
    """Seconds that a scheduler waits, after its last grant of `granted` seconds, before it calls the items lost."""
    return sizes.drift * granted + sizes.kill_margin * (1 + sizes.rho)


def wait_for_source(sizes: LeaseSizes) -> float:
    """Seconds that a process which takes over a source waits from its first reading of an unchanged row."""
    return sizes.drift * sizes.source


def counts_of_claim(sizes: LeaseSizes, granted: float) -> float:
    """The seconds that a tailer may count of a lease that a store granted on a claim: the store's clock may be as fast
    as its own is slow. So it asks for `wait_for_source`, and counts the lease of a source."""
    return granted / sizes.drift


def differing(ours: LeaseSizes, theirs: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """The sizes that two parts of one platform do not have in common: name, the other part's, ours. A size that the
    other part does not name is not compared: an older version names its heartbeat alone."""
    return [
        (name, theirs[name], size)
        for name, size in ours.by_name.items()
        if name in theirs and not math.isclose(theirs[name], size)
    ]
