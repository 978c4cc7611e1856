"""The inside of an executor process: the real engine, the functions that play the plan's deeds, the control thread."""

from __future__ import annotations

import asyncio
import contextvars
import math
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...foundation.current_run import RUN, waiting
from ...model.errors import Conflict, Throttled
from ...model.fence import micros_of
from ...model.outcome import Outcome
from ...runtime.board import Board, note_at
from ...runtime.deadman import Deadman
from ...runtime.engine import Engine
from ...runtime.executor_main import CULPRIT
from ...runtime.frames import (
    Assign,
    Done,
    Dying,
    EndRow,
    ExecutorSetup,
    Quit,
    Ready,
    Release,
    StopItems,
    ended_of,
    row_of,
)
from ...runtime.rules import attempt
from ...runtime.rules.attempt import Stop
from ...runtime.rules.overdue import Overdue
from ...sdk.context import Context
from ...sdk.function import Function
from .deed import THROTTLED, Deed
from .ends import Ends, deserved
from .host import Host
from .journal import Execution
from .loop import SimLoop
from .threads import BatonCondition, Thread, this

#: Seconds that a function takes to end when it is told to.
ENDING = 0.01
#: Factor by which a clock that measures a pause may be faster than true time.
RHO = 0.01
#: Seconds that a failed item waits at least when it did not ask for a time of its own (parts.DELAYS).
LEAST_PAUSE = 2.0
#: Seconds after which a `def` function looks whether it should end.
GLANCE = 0.5
#: Seconds between two looks of the control thread, at most.
PATIENCE = 1.0
#: Seconds between two looks of one that waits for other work.
ASKS = 0.5

#: Reading for a run, which sleeps by the second function.
Reads = Callable[[Execution, Callable[[float], Awaitable[None]]], Awaitable[None]]
_INSIDE: contextvars.ContextVar[Inside] = contextvars.ContextVar("tailrace-simulated-process")


async def play(n: int, context: Context, reads: Reads | None = None) -> None:
    """Plays the plan's deed of item `n`, in the process that it runs in. `reads`: what it reads before it ends."""
    await _INSIDE.get().play(n, context, reads)


def play_plainly(n: int, context: Context) -> None:
    """Plays the deed of item `n` as a `def` function, which runs in a thread."""
    _INSIDE.get().play_plainly(n, context)


class Stopped(Exception):
    """Raised by a `def` function that finds that it should end."""


class SimBoard(Board):
    """A board in memory that dies with the world."""

    def __init__(self, slots: int) -> None:
        self.fd = -1
        self.pulse: Callable[[], float] = lambda: 0.0
        self._note = note_at(slots)
        memory: Any = bytearray(self._note + 8192)
        self._map = memory
        self.cells = memoryview(memory)[: self._note].cast("Q")

    def last_pulse(self) -> float:
        return self.pulse()


@dataclass(slots=True, eq=False)
class RunningItem:
    """An item that runs in a process. `stop`: why it was told to end."""

    key: int
    deed: Deed
    execution: Execution
    broken: bool = False  # it fails with all others: when it is tried again is the platform's affair
    stop: Stop = Stop.NONE


class Inside:
    """The inside of one executor. `say` sends a frame, `die` ends the process with a code, `at` has it do something at
    a true time, `block` keeps its loop from turning for so many true seconds, and its control thread if the second
    argument says so.

    Invariant: `running` has what the world knows to run here, by key.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        loop: SimLoop,
        functions: Mapping[str, Function[..., Any]],
        board: Board,
        deadman: Deadman,
        say: Callable[[Any], None],
        die: Callable[[int], None],
        at: Callable[[float, Callable[[], None]], None],
        block: Callable[[float, bool], None],
    ) -> None:
        self.engine: Engine | None = None
        self.running: dict[int, RunningItem] = {}
        self.ends = Ends(host.journal, name)
        self._name = name
        self._world = host.world
        self._clock = host.clock
        self._journal = host.journal
        self._deeds = host.deeds
        self._loop = loop
        self._functions = functions
        self._board = board
        self._deadman = deadman
        self._say = say
        self._die = die
        self._at = at
        self._block = block
        self._over = False
        self._told: dict[int, Stop] = {}
        self._untold: dict[int, Execution] = {}  # what ended, of which nobody was told yet
        self._threads: list[Thread] = []
        assert loop.context is not None
        loop.context.run(_INSIDE.set, self)

    # ---- frames

    def _set_up(self, setup: ExecutorSetup) -> None:
        self.engine = Engine(
            {name: self._functions[name] for name in setup.functions},
            slots=setup.slots,
            threads=setup.threads,
            result_bytes=setup.result_bytes,
            timeout_grace=setup.timeout_grace,
            board=self._board,
            deadman=self._deadman,
            send=self.send,
            parents=setup.parents,
            clock=self._clock,
        )
        threads: Any = self.engine._threads
        threads._condition, threads._start = BatonCondition(self._loop), partial(self._start, threads)
        self._say(Ready())
        if any(function.spec.timeout for function in self._functions.values()):
            self._vigil = Overdue(PATIENCE, setup.timeout_grace, self._clock.monotonic())
            self._look_later()

    def accept(self, frame: Any) -> None:
        """Takes one frame from the supervisor, as runtime/executor_main.py does."""
        engine = self.engine
        match frame:
            case ExecutorSetup():
                self._set_up(frame)
            case Assign() if engine:
                self.ends.admitted(frame.first, frame.ids)
                self._journal.given(self._name, zip(frame.ids, frame.fences, strict=True))
                engine.assign(frame)
            case StopItems() if engine:
                self._told.update(dict.fromkeys(frame.keys, Stop(frame.why)))
                engine.stop_items(frame)
            case Release() if engine:
                engine.release()
            case Quit():
                self._die(0)

    def send(self, frame: Any) -> None:
        """Sends a frame of the engine's, after a check of the ends that it tells."""
        if isinstance(frame, Done):
            for key in frame.succeeded:
                self.ends.told(key, Outcome.SUCCESS)
            for row in frame.ended:
                ended = ended_of(row)
                self.ends.told(row[0], Outcome(ended.outcome), misfit=ended.misfit)
            self._tells(frame.succeeded, frame.ended)
        self._say(frame)

    def _tells(self, succeeded: Iterable[int], ended: Iterable[EndRow]) -> None:
        for key in (*succeeded, *(row[0] for row in ended)):
            self._told.pop(key, None)
            self._untold.pop(key, None)

    # ---- the functions

    async def play(self, n: int, context: Context, reads: Reads | None) -> None:
        """Plays one run of item `n`: it takes its time, then ends as its deed says."""
        run = self._begins(_holder().key, n, context)
        how, asked = "?", None
        try:
            await self._takes_its_time(run)
            await self._waits(run)
            await self._adds(run)
            if reads is not None and not run.broken:
                await reads(run.execution, partial(self._sleeps, run))
            if run.deed.kind == "crash":
                self._die(-signal.SIGSEGV)
                await self._loop.create_future()
            how, asked = deserved(run.deed, run.stop), run.deed.after
            run.deed.does()
        except (asyncio.CancelledError, Conflict):  # told to end, or it lost its item and reads nothing
            how = deserved(None, run.stop)
            raise
        except Throttled:  # by what it does; or since more runs wait in this process than may
            how, asked = "throttled", run.deed.after if run.deed.kind == "throttled" else None
            raise
        finally:
            self._ended(run, how, asked)

    def _start(self, threads: Any, place: int) -> None:
        """Begins a thread of the engine's."""
        if not self._over:
            thread = Thread(partial(threads._work, place))
            self._threads.append(thread)
            self._loop.call_soon(thread.go_on)

    def play_plainly(self, n: int, context: Context) -> None:
        """Plays one run in a thread: it looks now and then whether it should end, unless it is stubborn."""
        thread = this()
        run: RunningItem = thread.ask(partial(self._begins, _holder().key, n, context))
        end = self._loop.time() + run.deed.seconds * self._clock.rate
        how, asked = "?", None
        try:
            while (left := end - self._loop.time()) > 0:
                ends = math.inf if context.deadline is None else context.deadline - self._clock.monotonic()
                self._loop.call_later(min(left, GLANCE, ends if ends > 0 else GLANCE), thread.go_on)
                thread.rest()
                self._glances(run, context)
            self._waits_plainly(run, context, thread)
            if run.deed.kind == "crash":
                thread.ask(partial(self._die, -signal.SIGSEGV))
                thread.rest()
            how, asked = deserved(run.deed, run.stop), run.deed.after
            run.deed.does()
        except Stopped:
            how = deserved(None, run.stop)
            raise
        except Throttled:
            how, asked = "throttled", run.deed.after if run.deed.kind == "throttled" else None
            raise
        finally:
            if not self._over:
                thread.ask(partial(self._ended, run, how, asked))

    def _glances(self, run: RunningItem, context: Context) -> None:
        """Looks whether a `def` function was told to end, or its time is over; raises Stopped then, unless it is
        stubborn."""
        late = context.deadline is not None and self._clock.monotonic() >= context.deadline
        if not context.cancelled and not late:
            return
        if context.cancelled:
            run.stop = self._told.get(run.key, Stop.NONE)
        if not run.execution.told:
            run.execution.told, run.execution.timed_out = self._world.now, not context.cancelled
        if not run.deed.stubborn:
            raise Stopped

    def _waits_plainly(self, run: RunningItem, context: Context, thread: Thread) -> None:
        """Waits in a thread until the item is over that the deed waits for, if any."""
        if run.deed.child is None or run.broken:
            return
        with waiting(blocking=True):
            while not thread.ask(partial(self._journal.over, run.deed.child)):
                self._loop.call_later(ASKS, thread.go_on)
                thread.rest()
                self._glances(run, context)

    async def _waits(self, run: RunningItem) -> None:
        """Waits until the item is over that the deed waits for, if any."""
        if run.deed.child is None or run.broken:
            return
        self._world.count("waits for other work")
        with waiting(blocking=False):
            while not self._journal.over(run.deed.child):
                await self._sleeps(run, ASKS)

    async def _adds(self, run: RunningItem) -> None:
        """Waits until all additions of this run were answered, if its deed makes any."""
        if run.deed.adds and not run.broken:
            while not self._journal.added(run.execution):
                await self._sleeps(run, GLANCE)

    def _begins(self, key: int, n: int, context: Context) -> RunningItem:
        self.ends.begins(key, context.id)
        deed = self._deeds(n, self._journal.ran(context.id))
        broken = self._world.now < self._journal.broken_until
        deed = Deed("raise", min(deed.seconds, 1.0)) if broken else deed
        fence = context.fence
        if "/" not in context.id and fence >> 53:  # of a redriven letter of a stream; its queue counts microseconds
            fence = micros_of(fence)
        execution = self._journal.begin(context.id, n, fence, self._name, context.attempt)
        run = self.running[key] = RunningItem(key, deed, execution, broken)
        return run

    async def _takes_its_time(self, run: RunningItem) -> None:
        """Takes the deed's true seconds. A run that is told to end cleans up and does so, or is stubborn."""
        loop = self._loop
        if (run.deed.blocks or run.deed.locks) and not run.broken:
            run.execution.locked = run.deed.seconds if run.deed.locks else 0.0
            self._block(run.deed.seconds, run.deed.locks)
            await asyncio.sleep(0)
            return
        end = loop.time() + run.deed.seconds * self._clock.rate
        while (left := end - loop.time()) > 0:
            await self._sleeps(run, left)

    async def _sleeps(self, run: RunningItem, seconds: float) -> None:
        """Sleeps for `seconds` by its clock, unless it is told to end and is not stubborn."""
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            run.stop = self._told.get(run.key, Stop.TIMEOUT)
            run.execution.told, run.execution.timed_out = self._world.now, run.stop is Stop.TIMEOUT
            if not run.deed.stubborn:
                await asyncio.sleep(ENDING)
                raise

    def _ended(self, run: RunningItem, how: str, asked: float | None) -> None:
        if self._over:
            return
        del self.running[run.key]
        self._untold[run.key] = run.execution
        self.ends.did(run.key, how)
        self._journal.end(run.execution, how)
        if how in ("retry", "throttled") and not run.broken:
            self._pauses(run, asked or (LEAST_PAUSE if how == "retry" else THROTTLED))
            run.execution.spent = how == "retry"

    def _pauses(self, run: RunningItem, seconds: float) -> None:
        until = self._world.now + seconds / (1 + RHO)
        self._journal.expect_pause(run.execution.id, run.execution.n, until)

    # ---- the control thread

    def _look_later(self) -> None:
        assert self.engine is not None
        now = self._clock.monotonic()
        at = self._clock.true_at(now + self._vigil.pause(self.engine.hard, now))
        self._at(at, self._look)

    def _look(self) -> None:
        assert self.engine is not None
        hard, now = self.engine.hard, self._clock.monotonic()
        if self._vigil.looks(hard, now) and (overdue := self._vigil.overdue(hard, now)):
            key, timeout = overdue
            succeeded, rows = self.engine.unreported()
            self._tells(succeeded, rows)
            culprit = row_of(key, attempt.timed_out(timeout))
            self._say(Dying("a function did not end after its timeout", culprit, list(succeeded), list(rows)))
            run = self.running.get(key)
            if run is not None:
                run.execution.ended_all = run.execution.spent = True
                self._pauses(run, LEAST_PAUSE)
            self._die(CULPRIT)
        else:
            self._look_later()

    # ---- the process

    def freezes(self) -> None:
        """Notes that the process stands still."""
        for run in self.running.values():
            run.execution.frozen, run.execution.froze = True, self._world.now

    def thaws(self) -> None:
        """Notes that the process goes on."""
        for run in self.running.values():
            self._journal.thawed(run.execution)

    def dies(self, how: str, at: float | None) -> None:
        """Ends every run of the process, which died, `at` a time that may have passed."""
        self._over = True
        for run in self.running.values():
            self._journal.end(run.execution, how, at)
        for execution in self._untold.values():
            execution.died = how
        self.running.clear()

    def dispose(self) -> None:
        """Frees everything that its engine held, when the world has ended."""
        self._over = True
        for thread in self._threads:
            thread.end()
        if self.engine is not None:
            runners = self.engine._runners
            self._loop.keep([runner.task for runner in runners if runner.task is not None])
            runners.clear()  # none is replaced when it is thrown away


def _holder() -> Any:
    """The engine's record of the run whose code this is."""
    return RUN.get()
