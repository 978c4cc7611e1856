"""Owns the executor processes of a worker: makes its pools, and hands on items, deadlines and stops to them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from ..foundation import otel
from ..foundation.together import together
from ..model.errors import UserError
from ..model.lease import LeaseSizes
from ..model.metrics import RUN_DURATION
from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS, Ended, Flight
from . import pid_namespace_command
from .batch import AssignedFlight
from .config import WorkerConfig
from .executors import ExecutorProcess
from .frames import ExecutorSetup
from .guard_handle import Guarding
from .kept_sources import KeptSources
from .loader import LoadedFunctions
from .pool import Pool, Reports
from .rules.attempt import Stop
from .rules.silence import LOOKS, longest, said

#: The end of the name of a pool of suspects.
ALONE = " (alone)"
#: Runs that may wait for other work, as a multiple of the slots.
PARENTS = 4
DEFAULT_SIZES = LeaseSizes()


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool as a scheduler sees it: `slots` run at once, `limit` may be assigned at once. `alone`: it is for items
    that must have a process to themselves. `failure`: why some or all of its processes cannot load its functions."""

    name: str
    functions: tuple[str, ...]
    slots: int
    limit: int
    alone: bool
    failure: str = ""


class Supervisor:
    """The executors of one worker. `ended`, `notes`, `waits` and `limits` are called with keys (session << 56 | ref) on
    the loop, never while `assign` or a stop is being handed on by the caller for the same items. `earliest` gives the
    deadline of items; `by_pool` names the functions of each pool (rules/pools.py). `process` makes an executor, None: a
    real one, which `guard` watches (None: a guard of its own does). `sizes`: of the leases under which items run.

    Invariant: every item given to `assign` ends by exactly one call of `ended`.
    """

    def __init__(
        self,
        config: WorkerConfig,
        loaded: LoadedFunctions,
        by_pool: Mapping[str, list[str]],
        *,
        earliest: Callable[[Iterable[int]], float],
        ended: Callable[[list[int], dict[int, Ended]], None],
        notes: Callable[[list[tuple[int, str]]], None],
        waits: Callable[[list[int], list[int]], None],
        limits: Callable[[], None],
        process: Callable[..., ExecutorProcess] | None = None,
        guard: Guarding | None = None,
        sizes: LeaseSizes = DEFAULT_SIZES,
    ) -> None:
        self._guard = guard
        self._sizes = sizes
        self._process = process
        self._config = config
        self._loaded = loaded
        self._by_pool = by_pool
        self.times = RUN_DURATION.histograms()
        self._reports = Reports(earliest, ended, notes, waits, limits, self.times)
        self._pools: dict[str, Pool] = {}
        self._quarantine: dict[str, Pool] = {}

    async def start(self) -> None:
        """Starts every pool; returns when all executors are ready. Raises UserError when functions cannot be loaded
        there."""
        config, by_pool, declared = self._config, self._by_pool, self._loaded.functions
        if strange := sorted(config.memory.keys() - by_pool.keys()):
            raise UserError(
                f"memory: there is no pool {strange[0]!r}; expected one of {', '.join(sorted(by_pool))}: "
                "correct its name in the worker's configuration, or name that pool at a function or under pools"
            )
        process, guarding = self._process, []
        if process is None:
            self._guard = self._guard or Guarding.child()
            if config.pid_namespace:
                await asyncio.to_thread(pid_namespace_command.check_supported)
            process = partial(
                ExecutorProcess,
                watch=self._guard.watch,
                pid_namespace=config.pid_namespace,
                pause=self._sizes.heartbeat / LOOKS,
                kept=(await asyncio.to_thread(KeptSources, list(sys.modules.values()))).changed,
            )
            guarding = [self._guard.start(self._unguarded)]
        pool = partial(Pool, reports=self._reports, load_limit=config.load_limit, process=process)
        for name, functions in by_pool.items():
            bound = (config.memory.get(name, 0), f"memory of pool {name!r}")
            if declared[functions[0]].spec.isolation == "process":
                alone = self._setup(functions, 1, 1, 0, *bound)
                self._pools[name] = pool(name, alone, config.isolated, max_runs=config.max_runs)
            else:
                # A pool of `def` functions only has no use for more slots than threads.
                plain = not any(declared[function].is_async for function in functions)
                slots = config.threads if plain else config.slots
                parents = PARENTS * slots if config.waiting is None else config.waiting
                setup = self._setup(functions, slots, config.threads, parents, *bound)
                self._pools[name] = pool(name, setup, config.executors)
            alone = self._setup(functions, 1, 1, 1, config.quarantine_memory, "quarantine_memory")
            self._quarantine[name] = pool(name + ALONE, alone, config.suspects, fresh=True)
        await together(*guarding, *(each.start() for each in self._pools.values()))

    async def stop(self, why: str = "its worker was shut down") -> None:
        """Ends every executor and waits until all are reaped; the ends of their items are reported first."""
        await asyncio.gather(*(pool.stop(why) for pool in self.all_pools()))
        if self._guard is not None:
            await asyncio.to_thread(self._guard.close)

    def _unguarded(self) -> None:
        for pool in self.all_pools():
            for executor in list(pool.executors):
                executor.kill("its worker's guard had gone")

    def pools(self) -> list[PoolState]:
        """The pools and their limits now. Suspects have pools of their own: an item that waits for one of their few
        processes must not take the place of one that could run."""
        return [
            PoolState(pool.name, tuple(sorted(pool.functions)), *pool.places(), alone, pool.failure)
            for pools, alone in ((self._pools, False), (self._quarantine, True))
            for pool in pools.values()
        ]

    def failure(self) -> str:
        """The reason why executors cannot load their functions now; empty: all can."""
        return next((f"pool {pool.name}: {pool.failure}" for pool in self.all_pools() if pool.failure), "")

    def inside(self) -> set[int]:
        """Keys of all items that were assigned and have not ended."""
        return set().union(*(pool.inside() for pool in self.all_pools()))

    def parents(self) -> set[int]:
        """Keys of items that wait for other work."""
        return set().union(*(pool.parents() for pool in self.all_pools()))

    def pids(self) -> list[int]:
        """Process ids of the executors."""
        return [executor.pid for pool in self.all_pools() for executor in pool.executors]

    def assign(self, session: int, flight: Flight, fences: list[int], pool_name: str) -> None:
        """Runs a flight; its group's deadline is known to `earliest` already. Items that must run alone do so, whether
        their functions' pool or its pool of suspects was named."""
        batch = AssignedFlight(session, flight, fences)
        pool_name = pool_name.removesuffix(ALONE)
        pool = self._pools.get(pool_name)
        if pool is None or not {kind.function for kind in set(flight.kinds)} <= pool.functions:
            able = pool.functions if pool is not None else frozenset()
            strange = [index for index, kind in enumerate(flight.kinds) if kind.function not in able]
            reason = f"this worker does not run its function in pool {pool_name!r}"
            self._reports.ended([], {batch.base + index: Ended(Outcome.HELD, reason) for index in strange})
            apart = dict.fromkeys(strange)
        else:
            apart = {}
        if pool is None:
            return
        alone = [index for index, extra in flight.extras.items() if extra.alone and index not in apart]
        for index in alone:
            self._quarantine[pool_name].place(batch, index, index + 1)
        start = 0
        for index in sorted([*apart, *alone]):
            if index > start:
                pool.place(batch, start, index)
            start = index + 1
        if start < len(flight):
            pool.place(batch, start, len(flight))

    def stop_items(self, keys: set[int], why: Stop) -> None:
        """Ends items: those that wait at once, runs by cancellation, isolated ones by ending their process."""
        for pool in self.all_pools():
            pool.stop_items(keys, why)

    def stop_flights(self, flights: set[int], why: Stop) -> None:
        """Ends whole flights (keys without their index) as `stop_items` does."""
        self.stop_items({key for key in self.inside() if key >> INDEX_BITS in flights}, why)

    def release(self) -> None:
        """Hands back everything that has not started."""
        for pool in self.all_pools():
            pool.release()

    def set_timers(self, soon: float = float("inf")) -> None:
        """Sets kernel timers again that would ring before `soon`, after leases were renewed or items ended."""
        for pool in self.all_pools():
            pool.set_timers(soon)

    def watch(self, now: float) -> None:
        """Ends executors that hear of no renewal, before the end of their leases does (at each of `LOOKS` looks in a
        heartbeat)."""
        limit = longest(self._sizes)
        for pool in self.all_pools():
            for executor in pool.executors:
                if executor.ready and executor.live and executor.hears_nothing(now, limit):
                    executor.kill_unexplained(said(executor.silence.seconds))

    def all_pools(self) -> list[Pool]:
        return [*self._pools.values(), *self._quarantine.values()]

    def _setup(
        self, functions: list[str], slots: int, threads: int, parents: int, memory: int, memory_from: str
    ) -> ExecutorSetup:
        config = self._config
        return ExecutorSetup(
            modules=list(self._loaded.modules),
            path=list(sys.path),
            functions=functions,
            slots=slots,
            threads=threads,
            result_bytes=config.result_bytes,
            timeout_grace=config.timeout_grace,
            block_limit=config.loop_block_limit,
            memory=memory,
            memory_from=memory_from,
            parents=parents,
            timed=bool(config.metrics_listen) or otel.wants_metrics(),
            places=[place.reveal() for place in config.objects],
            pulse=self._sizes.heartbeat / LOOKS,
        )
