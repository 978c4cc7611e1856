"""The configuration of the stores: the engine of each, how durable they are, and their bounds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..foundation.config import Bytes, Seconds
from ..model.address import DEFAULT_STORE
from ..model.tenant_key import KeyRule, shared_key, tenant_key
from ..wire.bounds import USUAL, PeerBounds
from .dead_letters.dead_letters import MOST
from .engines import EMBEDDED
from .log.engines import mistakes_in
from .queue.engines import ENGINES as QUEUES
from .state.engines import ENGINES as STATES


class StoresConfig(BaseModel):
    """The stores: the engine of each, how durable they are, and how much they hold. The defaults keep everything in
    files of the node, and fit a laptop and a small server alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: str = Field(DEFAULT_STORE, description="host:port to serve the stores on; port 0 takes any free one")
    metrics_listen: str = Field(
        "",
        description="host:port that answers GET /metrics where the stores run apart, beyond loopback by HTTPS, with "
        "certificates; empty: none",
    )
    durability: Literal["durable", "relaxed"] = Field(
        "durable",
        description="durable: an acknowledged write survives a power cut; relaxed: it survives a crash of the process",
    )
    max_payload: Bytes = Field(4 << 20, ge=1, le=12 << 20, description="largest payload of one workload")
    max_waiting: int = Field(10_000_000, ge=1, description="most workloads in the queue that have not ended")
    retention: Seconds = Field(7 * 86_400.0, description="time for which the status of an ended workload is kept")
    keep_ended: int = Field(10_000_000, ge=0, description="most ended workloads that are kept")
    history_bytes: Bytes = Field(1 << 30, ge=0, description="most bytes of ended workloads, with their reasons")
    result_retention: Seconds = Field(7 * 86_400.0, description="time for which results are kept")
    result_bytes: Bytes = Field(1 << 30, ge=0, description="most bytes of results that are kept")
    max_dead_letters: int = Field(
        MOST,
        description="most dead letters of one function and tenant; beyond it, items that fail for good stay in their "
        "source",
    )
    job_retention: Seconds = Field(7 * 86_400.0, description="time for which a complete job is kept, with its results")
    job_max_age: Seconds = Field(
        90 * 86_400.0,
        gt=0,
        description="time for which a job may be open; then it is cancelled, also one that was never sealed or is "
        "paused",
    )
    job_bytes: Bytes = Field(
        10 << 30,
        ge=0,
        description="most bytes that jobs keep until they are forgotten: results, and the payloads of failed items; "
        "beyond that nothing is added to a job",
    )
    log_retention: Seconds = Field(
        7 * 86_400.0,
        description="time for which records of a log are kept, and longer where a known tailer has not settled them",
    )
    log_bytes: Bytes = Field(
        32 << 30,
        ge=1 << 20,
        description="most bytes of the log: near it the oldest records go that no known tailer needs, and beyond it "
        "nothing is appended",
    )
    queue: dict[str, Any] = Field(
        {"engine": EMBEDDED},
        description="the store of queued workloads: `engine` (sqlite, postgres, redis) and its own options",
    )
    state: dict[str, Any] = Field(
        {"engine": EMBEDDED},
        description="the store of checkpoints, owners, failed items, dead letters, results, gates, quotas and "
        "schedules: `engine` (sqlite, postgres, redis) and its own options",
    )
    delay_log: dict[str, Any] = Field(
        {"engine": EMBEDDED},
        description="the log of the delay service's items: `engine` (sqlite, redis, kafka) and its own options",
    )
    delay_queue: Literal["none", "sqlite"] = Field(
        "none",
        description="a queue in which the delay service's items wait, each with its due time, instead of the ladder's "
        "streams (queues of fixed delays): none, or sqlite (a file of the node); due items go through "
        "`delay_log` all the same",
    )
    peers: PeerBounds = Field(
        USUAL, description="limits of a connection to a listener, and the time that the listener waits for one"
    )
    write_ahead: Bytes = Field(
        256 << 20,
        ge=1 << 20,
        description="bytes of a file's write-ahead log beyond which, where it cannot be begun anew, a warning names "
        "the processes that have the file open; usually it has 8 MB, and after one very large write some "
        "hundred",
    )
    shared_keys: bool = Field(
        False,
        description="whether tenants share their keys (dedupe_key, key, the key of a job): for tenants that are labels "
        "only; else a key is its tenant's own",
    )
    low_share: float = Field(0.05, ge=0, le=0.5, description="share of each claim that lower priorities are sure of")
    busy_share: float = Field(
        0.6,
        gt=0,
        le=1,
        description="share of a processor that the node may use while more urgent items are submitted a few at a "
        "time; beyond it claims of less urgent ones pause, up to 0.1 s; 1: never. For the embedded queue "
        "only",
    )

    @field_validator("max_dead_letters")
    @classmethod
    def _check_dead_letters(cls, most: int) -> int:
        if most < 1:
            raise ValueError(
                "expected 1 or more: without room for any, every item that fails for good would stay in its source; "
                f"leave it out for the usual {MOST:,}"
            )
        return most

    @field_validator("delay_log")
    @classmethod
    def _check_delay_log(cls, choice: dict[str, Any]) -> dict[str, Any]:
        if mistakes := mistakes_in(choice):
            raise ValueError("; ".join(mistakes))
        return choice

    @field_validator("queue")
    @classmethod
    def _check_queue(cls, choice: dict[str, Any]) -> dict[str, Any]:
        if mistakes := QUEUES.mistakes_in(choice):
            raise ValueError("; ".join(mistakes))
        return choice

    @field_validator("state")
    @classmethod
    def _check_state(cls, choice: dict[str, Any]) -> dict[str, Any]:
        if mistakes := STATES.mistakes_in(choice):
            raise ValueError("; ".join(mistakes))
        return choice

    @property
    def key_rule(self) -> KeyRule:
        """The key of a tenant as it is kept."""
        return shared_key if self.shared_keys else tenant_key

    @property
    def synchronous(self) -> str:
        """The value of SQLite's `synchronous` pragma for this durability."""
        return "FULL" if self.durability == "durable" else "NORMAL"
