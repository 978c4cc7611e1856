"""The delay service's configuration (`delay.yaml`): the ladder, where it listens, and its bounds."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..foundation.config import Bytes, Seconds
from ..model.address import DEFAULT_DELAY
from ..model.units import duration_text
from ..wire.bounds import USUAL, PeerBounds
from .rules.ladder import DEFAULT_RUNGS, Ladder

#: A chain may have at most so many waits of the longest rung: each hop is a durable write.
MOST_HOPS = 1000


class DelayConfig(BaseModel):
    """The settings of a delay service, each default in its own words.

    listen       host:port (default 127.0.0.1:8789); beyond loopback, or as tls:host:port, with certificates:
                 `tls` in access.yaml
    rungs        the waits of the ladder, rising, at most 16 (1s, 5s, 30s, 1m, 5m, 30m, 6h)
    max_delay    how far ahead an item may be due (30 days); at most 1000 times the longest rung
    max_items    items held at once, rungs and due streams together; beyond it parks are refused (1,000,000)
    max_bytes    their payload bytes, about (1 GiB)
    batch_items  items that the mover reads and appends at once (1024, one row of the embedded log)
    batch_bytes  their payload bytes (1 MiB)
    metrics_listen  host:port that answers GET /metrics with its numbers where it runs apart (none); beyond loopback by
                 HTTPS, with certificates
    peers        what its listener grants a connection, and how long it waits for one
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: str = DEFAULT_DELAY
    rungs: tuple[Seconds, ...] = DEFAULT_RUNGS
    max_delay: Seconds = Field(30 * 86_400.0, gt=0)
    max_items: int = Field(1_000_000, ge=1)
    max_bytes: Bytes = Field(1 << 30, ge=1)
    batch_items: int = Field(1024, ge=1, le=10_000)
    batch_bytes: Bytes = Field(1 << 20, ge=1, le=16 << 20)
    metrics_listen: str = ""
    peers: PeerBounds = USUAL

    @model_validator(mode="after")
    def _fits(self) -> Self:
        ladder = Ladder(self.rungs)
        if any(rung < 0.001 or round(rung * 1000) / 1000 != rung for rung in ladder.rungs):
            raise ValueError("rungs are named by their wait: give them in whole milliseconds")
        if self.max_delay > MOST_HOPS * ladder.rungs[-1]:
            raise ValueError(
                f"max_delay {duration_text(self.max_delay)} would take more than {MOST_HOPS} hops of the longest rung "
                f"({duration_text(ladder.rungs[-1])}): add a longer rung or lower max_delay"
            )
        return self

    def ladder(self) -> Ladder:
        """The rungs as the rule takes them."""
        return Ladder(self.rungs)
