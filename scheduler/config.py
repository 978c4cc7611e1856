"""The scheduler's configuration."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SchedulerConfig(BaseModel):
    """Everything about one scheduler process. Its leases are configured once for the whole platform (LeaseSizes)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = Field("127.0.0.1:8788", description="host:port to serve on; port 0 takes any free one")
    region: str = Field("", description="where this scheduler runs, for people")
    lane_items: int = Field(
        20_000, ge=64, le=1_000_000, description="most items waiting for one function at one priority"
    )
    session_items: int = Field(
        20_000, ge=64, le=1_000_000, description="most items one tailer session may have out at once"
    )
    sessions: int = Field(1_000, ge=1, le=100_000, description="most tailer and worker sessions at once")
    calls: int = Field(10_000, ge=1, le=1_000_000, description="most Execute calls under way at once")
    payload_bytes: int = Field(4 << 20, ge=1, le=8 << 20, description="largest payload of an Execute call, bytes")
    low_share: float = Field(
        0.05, ge=0, le=0.5, description="share of a function's starts that its lowest waiting priority is sure of"
    )
    grace_heartbeats: float = Field(
        2.0, ge=0, le=100, description="heartbeats that waiting items stay when a function's last worker has gone"
    )
