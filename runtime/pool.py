"""One pool: the executors that run some functions. It places their items, and replaces executors that died."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..foundation import otel
from ..foundation.lifecycle import end_all
from ..model.errors import UserError
from ..model.histogram import Histograms
from ..model.metrics import RUN_DURATION
from ..model.outcome import Outcome
from ..model.workload import Ended
from .batch import AssignedFlight, Row, row_key
from .executors import ExecutorProcess
from .frames import ROW_KEY, Done, ExecutorSetup, Failed, Notes, Ready, Release, RunTimes, StopItems, Waits, ended_of
from .rules import attempt
from .rules.attempt import Stop
from .rules.buffer import PrefetchDepth
from .rules.dispatch import SlotQueue, shares
from .rules.restarts import Restarts
from .rules.suspicion import ProcessDeath, by_deadline, cause, explained, verdicts
from .run_times import take

LOG = logging.getLogger("tailrace.runtime")
#: Seconds for which a process of suspects is kept when it has nothing to do: the next one may be on its way.
KEPT_IDLE = 5.0
#: One in so many processes of suspects starts at a time, two at least (by default one per processor). Starting keeps a
#: processor busy: if more did, all of them would be ready later, and so would the one that runs everything else.
STARTING = 4
#: Processes in a row that did not come to load the functions, after which that is told.
IN_A_ROW = 3
#: Seconds after which an item comes again that was handed back since no process can load its function.
HANDED_BACK = 1.0
#: Seconds that processes of a pool that ends get to export their last spans.
LAST_SPANS = 1.0


@dataclass(frozen=True, slots=True)
class Reports:
    """The listener of a pool. Keys name items; `earliest` is the deadline of the earliest of them, 0 for none.

    ended    (succeeded, ended)
    notes    progress notes
    waits    items that wait for other work from now on, and items that go on
    limits   the pool's limit changed
    times    takes how long runs took, by function and outcome
    """

    earliest: Callable[[Iterable[int]], float]
    ended: Callable[[list[int], dict[int, Ended]], None]
    notes: Callable[[list[tuple[int, str]]], None]
    waits: Callable[[list[int], list[int]], None]
    limits: Callable[[], None]
    times: Histograms = field(default_factory=RUN_DURATION.histograms)


class Pool:
    """A pool of `size` processes. A one-at-a-time pool gives each run a process to itself and replaces it after
    `max_runs`; a `fresh` one (quarantine) has no process until an item waits, and ends idle ones after a while: the
    suspects of a crash follow each other in warm processes, and an item that ends its process was alone in it.
    `process` makes an executor.

    Invariant: an item of this pool is in `waiting` or in the `live` of exactly one executor.
    """

    def __init__(
        self,
        name: str,
        setup: ExecutorSetup,
        size: int,
        reports: Reports,
        *,
        load_limit: float,
        max_runs: int = 0,
        fresh: bool = False,
        process: Callable[..., ExecutorProcess],
    ) -> None:
        self.name = name
        self.functions = frozenset(setup.functions)
        self.setup = setup
        self.one_at_a_time = max_runs > 0 or fresh
        self.slots = size if self.one_at_a_time else size * setup.slots
        self.depth = PrefetchDepth(self.slots)
        self.executors: list[ExecutorProcess] = []
        self.waiting: SlotQueue[Row] = SlotQueue()
        self.deaths = 0  # of processes, that nobody meant
        self.failure = ""  # why the last process could not load its functions
        self._size = size
        self._reports = reports
        self._load_limit = load_limit
        self._max_runs = max_runs
        self._fresh = fresh
        self._process = process
        self._restarts = Restarts(setup.slots)
        self._begun = fresh  # its first processes were ready
        self._stopping = False
        self._starting: set[asyncio.Task[None]] = set()
        self._unborn = 0  # of these, how many have no executor yet
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    # -- processes ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts the processes of a pool that is not `fresh`, and returns when each is ready. Raises UserError when one
        cannot load its functions."""
        if self._fresh:
            return
        for _ in range(self._size):
            self._spawn(0.0)
        while not (len(self.executors) >= self._size and all(executor.ready for executor in self.executors)):
            if self.failure:
                raise UserError(f"pool {self.name!r}: {self.failure}")
            self._changed.clear()
            await self._changed.wait()
        self._begun = True

    async def stop(self, why: str) -> None:
        """Ends all processes and waits until they are reaped."""
        self._stopping = True
        await end_all(self._starting)
        if otel.queue() is not None:
            await self._export_last()
        for executor in list(self.executors):
            executor.kill(why)
        for executor in list(self.executors):
            await executor.dead.wait()

    async def _export_last(self) -> None:
        """Lets processes that run nothing export their last spans."""
        idle = [executor for executor in self.executors if executor.ready and not executor.live]
        for executor in idle:
            executor.quit()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SPANS):
                for executor in idle:
                    await executor.dead.wait()

    def _spawn(self, pause: float) -> None:
        if not self._stopping:
            self._unborn += 1
            task = self._loop.create_task(self._start_one(pause), name="start-executor")
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_one(self, pause: float) -> None:
        try:
            await asyncio.sleep(pause)
        finally:
            self._unborn -= 1
        executor = None
        try:
            executor = self._process(self.setup, on_frame=self._frame, on_death=self._died)
            self.executors.append(executor)
            await executor.start()
        except (
            OSError,
            RuntimeError,
            MemoryError,
        ) as error:  # no memory, descriptor or thread: like one that died young
            LOG.error("pool %s: an executor cannot be started: %s", self.name, error or type(error).__name__)
            if executor is not None and executor.pid:  # it runs, and nobody can speak to it: its death is told later
                executor.kill("")
                return
            if executor is not None:
                self.executors.remove(executor)
                executor.close()
            self._spawn(self._restarts.not_started())
            if self._begun and self._restarts.in_a_row >= IN_A_ROW:
                self._cannot_load(f"its processes cannot be started: {error or type(error).__name__}")
        else:
            self._loop.call_later(self._load_limit, self._end_unready, executor)

    def _end_unready(self, executor: ExecutorProcess) -> None:
        """Ends a process whose time to load is over: a worker that waits for it hears why, one that runs gets another
        process."""
        if executor.ready or executor.dead.is_set():
            return
        modules = ", ".join(self.setup.modules)
        failure = (
            f"{modules} did not load within {self._load_limit:g} s: see what the import waits for, "
            "or raise load_limit in the worker's configuration"
        )
        executor.kill("it did not load")
        self._cannot_load(failure)

    def _cannot_load(self, why: str) -> None:
        """Notes that a process could not load the functions. Where none is left that has, what waits for one goes back,
        and none is announced, until one can: it is tried again and again."""
        if why != self.failure:
            LOG.error("pool %s: %s", self.name, why)
        self.failure = why
        self._changed.set()
        self._hand_back_unless_able()
        self._reports.limits()

    def _hand_back_unless_able(self) -> None:
        if self.failure and not self._able():
            self._hand_back(self.failure, HANDED_BACK)

    def _hand_back(self, why: str, after: float | None = None) -> None:
        held = Ended(Outcome.HELD, f"handed back: {why}", after)
        self._tell([], {row_key(row): held for row in self.waiting.take(lambda row: True)})

    def places(self) -> tuple[int, int]:
        """Slots and limit that a scheduler is told of: those of processes that have loaded, where some cannot."""
        able = min(self._size, len(self._able())) if self.failure else self._size
        return self.slots * able // self._size, self.depth.announced * able // self._size

    def _died(self, executor: ExecutorProcess, death: ProcessDeath) -> None:
        self.executors.remove(executor)
        ends = verdicts(executor.live, executor.was_running, death, executor.notes, executor.was_waiting)
        executor.live.clear()
        executor.waits.clear()
        self._tell([], ends)
        if not self._stopping:
            lived = self._loop.time() - executor.started
            ended = executor.retiring or by_deadline(death) or (executor.why and death.code == -signal.SIGKILL)
            meant = bool(ended and executor.ready)  # one that could not load was ended too, and the next one cannot
            self.deaths += not meant
            pause = self._restarts.died(meant=meant, lived=lived, runs=executor.runs)
            if self._restarts.in_a_row >= IN_A_ROW and not executor.ready and not self.failure:
                modules = ", ".join(self.setup.modules)
                self._cannot_load(f"its process {cause(death.code)} while it loaded {modules}")
            if not executor.retiring:
                LOG.warning(
                    "pool %s: executor %d ended (code %d%s); it held %d items, %d ran",
                    *(
                        self.name,
                        executor.pid,
                        death.code,
                        f", {why}" if (why := explained(death) or death.what) else "",
                        len(ends),
                    ),
                    len(executor.was_running),
                )
            # Suspects wait for one that loads, or it is to be announced again.
            wanted = not self._fresh or (not executor.ready and (self.failure or len(self.waiting)))
            if wanted and not executor.retiring:
                self._spawn(pause)
            self.fill()
        self._changed.set()

    def _retire(self, executor: ExecutorProcess) -> None:
        executor.retiring = True
        executor.quit()
        self._loop.call_later(2.0, executor.kill, "it did not quit")
        if not self._fresh:
            self._spawn(0.0)

    # -- items in ----------------------------------------------------------------------------------------------------

    def place(self, batch: AssignedFlight, start: int, stop: int) -> None:
        """Puts items [start, stop) of a batch into the least loaded executors, or has them wait for one."""
        able = [] if self.one_at_a_time or len(self.waiting) else self._able()
        if not able:
            for index in range(start, stop):
                self.waiting.push(batch.flight.kinds[index].priority, (batch, index))
            self._hand_back_unless_able()
            self.fill()
            return
        deadline = self._reports.earliest((batch.base + start,))
        for executor, share in zip(able, shares([_load(each) for each in able], stop - start), strict=True):
            if share:
                batch.send(executor, start, start + share, deadline)
                start += share

    def fill(self) -> None:
        """Gives waiting items to executors that have room."""
        waiting = self.waiting
        if self._fresh and len(waiting):
            mine = [executor for executor in self.executors if not executor.retiring]
            parents = min(self._size, sum(bool(executor.waits) for executor in mine))  # they take nobody's place
            idle = sum(not executor.live for executor in mine) + self._unborn
            starting = sum(not executor.ready for executor in mine) + self._unborn
            may_start = max(2, self._size // STARTING) - starting
            for _ in range(min(self._size + parents - len(mine) - self._unborn, len(waiting) - idle, may_start)):
                self._spawn(0.0)
        while len(waiting):
            able = [executor for executor in self._able() if not (self.one_at_a_time and executor.live)]
            if not able:
                return
            row = waiting.pop()
            assert row is not None
            batch, index = row
            executor = min(able, key=_load)
            executor.given = self._loop.time() if self.one_at_a_time else 0.0
            batch.send(executor, index, index + 1, self._reports.earliest((row_key(row),)))

    def _able(self) -> list[ExecutorProcess]:
        return [executor for executor in self.executors if executor.ready and not executor.retiring]

    # -- frames from executors ---------------------------------------------------------------------------------------

    def _frame(self, executor: ExecutorProcess, frame: Any) -> None:
        match frame:
            case Done():
                self._done(executor, frame)
            case Notes():
                notes = [(key, note) for key, note in frame.notes if key in executor.live]
                executor.notes.update(notes)
                self._reports.notes(notes)
            case Waits():
                waits = [key for key in frame.waits if key in executor.live]
                goes_on = [key for key in frame.goes_on if key in executor.waits]
                executor.waits.update(waits)
                executor.waits.difference_update(goes_on)
                self._reports.waits(waits, goes_on)
                if self._fresh:
                    self.fill()
            case RunTimes():
                take(self._reports.times, frame, self.functions)
            case Ready():
                executor.ready = True
                self._changed.set()
                if self.failure:
                    if self._fresh or len(self._able()) >= self._size:
                        self.failure = ""
                    self._reports.limits()
                self.fill()
                if self._fresh and not executor.live:
                    self._loop.call_later(KEPT_IDLE, self._retire_idle, executor, executor.runs)
            case Failed():
                executor.kill("it cannot load its functions")
                self._cannot_load(frame.message)

    def _done(self, executor: ExecutorProcess, frame: Done) -> None:
        live = executor.live
        succeeded, rows = frame.succeeded, frame.ended
        if not live.issuperset(succeeded):
            succeeded = [key for key in succeeded if key in live]
        live.difference_update(succeeded)
        ends: dict[int, Ended] = {}
        for row in rows:
            if (key := row[ROW_KEY]) in live:
                live.discard(key)
                ends[key] = end = ended_of(row)
                end.progress = end.progress or executor.notes.get(key, "")
        if executor.waits:
            executor.waits &= live
        if executor.notes:
            executor.notes = {key: note for key, note in executor.notes.items() if key in live}
        count = len(succeeded) + len(ends)
        executor.runs += count
        self._tell(succeeded, ends)
        if self.depth.completed(count, self._loop.time()) and not self._fresh:
            self._reports.limits()
        if self.one_at_a_time and not live and not executor.retiring:
            if self._fresh:
                self._loop.call_later(KEPT_IDLE, self._retire_idle, executor, executor.runs)
            elif executor.runs >= self._max_runs:
                self._retire(executor)
        if len(self.waiting):
            self.fill()

    def _retire_idle(self, executor: ExecutorProcess, runs: int) -> None:
        """Ends a process to which nothing came since it had ended `runs` runs."""
        if executor.runs == runs and not executor.live and not executor.retiring and not executor.dead.is_set():
            self._retire(executor)

    def _tell(self, succeeded: list[int], ends: dict[int, Ended]) -> None:
        if succeeded or ends:
            self._reports.ended(succeeded, ends)

    # -- stopping items ----------------------------------------------------------------------------------------------

    def stop_items(self, keys: set[int], why: Stop) -> None:
        """Ends these items, wherever in this pool they are; keys that are not here are ignored."""
        unstarted = attempt.unstarted(why)
        self._tell([], {row_key(row): unstarted for row in self.waiting.take(lambda row: row_key(row) in keys)})
        for executor in list(self.executors):
            here = executor.live & keys
            if not here:
                continue
            if self.one_at_a_time:
                executor.culprits.update({key: attempt.stopped(why) for key in here})
                executor.kill("its run was stopped")
            else:
                executor.send(StopItems(sorted(here), int(why)))
                if why is Stop.LEASE:
                    executor.end_what_goes_on(self._reports.earliest(here))

    def release(self) -> None:
        """Hands back everything that has not started."""
        self._hand_back("its worker is draining")
        for executor in self.executors:
            if executor.live:
                executor.send(Release())

    def inside(self) -> set[int]:
        """Keys of all items in this pool."""
        keys = {row_key(row) for lane in self.waiting.lanes for row in lane}
        return keys.union(*(executor.live for executor in self.executors))

    def parents(self) -> set[int]:
        """Keys of items that wait for other work."""
        return set().union(*(executor.waits for executor in self.executors))

    def set_timers(self, soon: float) -> None:
        """Sets the kernel timers that would ring before `soon` (absolute) to the deadlines of their items' leases
        now."""
        for executor in self.executors:
            if executor.timer and executor.timer < soon:
                deadline = self._reports.earliest(executor.live)
                if deadline != executor.timer:
                    executor.set_timer(deadline)


def _load(executor: ExecutorProcess) -> int:
    """Number of items that have a place in an executor, or wait for one there."""
    return len(executor.live) - len(executor.waits)
