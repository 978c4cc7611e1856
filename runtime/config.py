"""The worker's configuration (`worker.yaml`). Every number has a default somebody can justify."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..foundation.config import Bytes, Name, Seconds
from ..foundation.object_places import Place
from ..model.errors import InvalidRequest
from ..model.labels import labels
from .machine import usual_executors


class WorkerConfig(BaseModel):
    """A worker: its supervisor and its executor processes.

    executors         processes of each shared pool; default: one per processor that the worker may use (by its affinity
                      and its container's quota, rounded up), as far as there are 128 MiB of memory for each
    slots             `async def` runs at once in one executor: waiting costs memory only
    threads           `def` runs at once in one executor: more threads only fight over the interpreter lock
    waiting           runs of one executor that may wait for other work at once (`result()` in a function), besides
                      those that have its slots; `def` functions get as many threads more. 0: none may. Default: four
                      times the slots
    pools             functions that are in another pool than their declaration says, by pool: `{critical: [charge]}`
    serves            the pools of which this worker runs functions, such as `[critical]`; a function that names no
                      pool is in `default`. Default: all of them
    labels            labels that functions may require of this worker, such as `[gpu, region=eu]`, beside those that
                      every worker has: os, arch, python, cpus, host. A function that requires more does not run here
    isolated          processes of each `isolation="process"` pool; default: as many as `executors` has
    suspects          processes in which suspects of a crash run, one each; there only while there are some, and 5 s
                      more. Default: four times as many as `executors` has, since most of them wait rather than compute
    quarantine_memory memory a suspect may allocate, on top of its process's memory when that was ready; 0: as much as
                      it likes. Default: 1 GiB, more than most functions ever need, and stopped long before the
                      machine's out-of-memory killer would have to choose a process
    memory            memory that each executor of an ordinary pool may allocate, likewise on top, by pool:
                      `{default: 4GiB}`. Default: none is bound, since many runs share an executor and only the
                      operator knows how much they need together
    max_runs          runs after which an isolated process is replaced, so that leaks stay small
    pid_namespace     each executor gets a PID namespace of its own (Linux): all processes that it started end with it,
                      whatever they did to hide. Needs root, or user namespaces for all. Default: no, since not every
                      system allows it, and it costs two small processes for each executor
    load_limit        seconds in which a process must have loaded its modules, else it is ended and started again
    grace             seconds that running functions get when the worker drains
    timeout_grace     seconds between a timeout's cancellation and the end of the process that ignores it
    loop_block_limit  seconds a function may block its event loop before its process is ended; one that keeps the
                      interpreter lock as well has what the leases leave, 10 s of the usual ones
    result_bytes      largest return value kept, as JSON
    objects           places whose objects functions may open (`ctx.open()`), each as its tailer's file says: url,
                      endpoint, region, credentials. Default: none
    metrics_listen    host:port that answers GET /metrics with this worker's numbers, beyond loopback by HTTPS, with
                      certificates; default: none
    name              shown to people; default: host and process id
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    executors: int = Field(default_factory=usual_executors, ge=1, le=256)
    slots: int = Field(200, ge=1, le=10_000)
    threads: int = Field(32, ge=1, le=1_000)
    waiting: int | None = Field(None, ge=0, le=10_000)
    pools: dict[Name, tuple[str, ...]] = Field(default_factory=dict)
    serves: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    isolated: int = Field(default_factory=usual_executors, ge=1, le=256)
    suspects: int = Field(default_factory=lambda: 4 * usual_executors(), ge=1, le=256)
    quarantine_memory: Bytes = Field(1 << 30, ge=0)
    memory: dict[str, Bytes] = Field(default_factory=dict)
    max_runs: int = Field(100, ge=1)
    pid_namespace: bool = False
    load_limit: Seconds = Field(120.0, gt=0, le=3_600)
    grace: Seconds = Field(30.0, ge=0, le=86_400)
    timeout_grace: Seconds = Field(5.0, gt=0, le=600)
    loop_block_limit: Seconds = Field(30.0, gt=0, le=86_400)
    result_bytes: int = Field(1 << 20, ge=0, le=8 << 20)
    objects: tuple[Place, ...] = ()
    metrics_listen: str = ""
    name: str = ""

    @field_validator("labels")
    @classmethod
    def _known_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            labels(value)
        except InvalidRequest as error:
            raise ValueError(str(error)) from None
        return value
