"""The scheduler's configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ..foundation.config import Seconds
from ..model.address import DEFAULT_SCHEDULER
from ..wire.bounds import USUAL, PeerBounds
from .rules.clog import ClogLimits

#: A direct address that is chosen by the process which starts the scheduler and its neighbours.
AUTO = "auto"


class ClogConfig(BaseModel):
    """The circuit breaker of functions: when a function counts as broken rather than its items, and how it is tried
    then (law 7). The defaults freeze a function that was well after 45 failed first attempts in a row, and never one
    of which one item in five fails."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: float = Field(
        default=0.9, ge=0.5, lt=1, description="share of a function's last first attempts that must fail"
    )
    outcomes: int = Field(
        default=20, ge=5, le=10_000, description="number of first attempts that this share is taken over, about"
    )
    window: Seconds = Field(
        default=300.0, gt=0, description="seconds within which as many first attempts as `outcomes` must have ended"
    )
    first_probe: Seconds = Field(
        default=1.0, gt=0, description="seconds from the freeze to the first probe; doubled each time"
    )
    last_probe: Seconds = Field(default=30.0, gt=0, description="longest time between two probes")

    def limits(self) -> ClogLimits:
        """The numbers as the rule takes them."""
        return ClogLimits(**{name: getattr(self, name) for name in type(self).model_fields})


class SchedulerConfig(BaseModel):
    """The settings of one scheduler process. Its leases are configured once for the whole platform (LeaseSizes)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = Field(DEFAULT_SCHEDULER, description="host:port to serve on; port 0 takes any free one")
    direct_listen: str = Field(
        AUTO,
        description="host:port on loopback where tailers and workers of this machine may attach without gRPC, as "
        "direct:host:port; auto: any free port under `tailrace up`, else none; empty: none",
    )
    metrics_listen: str = Field(
        "",
        description="host:port that answers GET /metrics with this scheduler's numbers, beyond loopback by HTTPS, with "
        "certificates; empty: none",
    )
    lane_items: int = Field(
        20_000, ge=64, le=1_000_000, description="most items that wait for one function at one priority"
    )
    session_items: int = Field(
        20_000, ge=64, le=1_000_000, description="most items one tailer session may have out at once"
    )
    opportunistic_ceiling: float = Field(
        0.9,
        gt=0,
        le=1,
        description="part of the slots that opportunistic functions may fill up; the rest is at once there for others",
    )
    peers: PeerBounds = Field(
        USUAL, description="bounds that each listener sets its connections, and how long it waits for them"
    )
    sessions: int = Field(1_000, ge=1, le=100_000, description="most tailer and worker sessions at once")
    calls: int = Field(10_000, ge=1, le=1_000_000, description="most Execute calls under way at once")
    payload_bytes: int = Field(4 << 20, ge=1, le=8 << 20, description="largest payload of an Execute call, bytes")
    low_share: float = Field(
        0.05, ge=0, le=0.5, description="share of a function's starts that its lowest waiting priority is sure of"
    )
    clog: ClogConfig = Field(
        default=ClogConfig(), description="the circuit breaker: when a function is frozen, and for how long"
    )
    slow_start: Seconds = Field(
        default=2.0,
        ge=0,
        le=300,
        description="seconds in which the share of a newly attached worker rises to its full size, where one of its "
        "functions calls a downstream",
    )
    outlier_pause: Seconds = Field(
        default=10.0,
        ge=0,
        le=300,
        description="seconds without new items for a worker at which items fail that go well at others (outlier "
        "ejection); twice as long each time that it fails its probe, at most 5 min; 0: never",
    )
    rejoin: Seconds = Field(
        default=2.0,
        ge=0,
        le=60,
        description="seconds that a restarted scheduler waits, where a quota limits a concurrency, for its workers to "
        "come back and say which items they still run, before anything starts",
    )
    grace_heartbeats: float = Field(
        2.0, ge=0, le=100, description="heartbeats that waiting items stay when a function's last worker has gone"
    )
