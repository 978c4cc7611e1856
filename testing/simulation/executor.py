"""An executor process as its kernel and its supervisor see it: items that take their time, the kernel's timer, death.

The functions are plans (plan.Deed). What is real: the frames, the supervisor's end, and `runtime.deadman.Deadman`,
which decides when the timer rings. The timer itself is the kernel's: it rings whether or not the supervisor runs, and
kills a process that is frozen when it wakes, before it does anything.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...runtime.deadman import Deadman
from ...runtime.engine import LATE
from ...runtime.executors import ExecutorProcess
from ...runtime.frames import Assign, Done, Frames, Quit, Ready, Release, Setup, StopItems, Timer, encode, row_of
from ...runtime.rules import attempt
from ...runtime.rules.attempt import Stop
from ...runtime.rules.suspicion import Death
from ...sdk.model.errors import Fatal, RetryLater, Throttled
from ...sdk.model.outcome import Outcome
from ...sdk.model.workload import Ended
from .exchange import NEXT
from .host import Host, here
from .journal import Execution, Journal
from .loop import SimLoop
from .plan import Deed

#: Seconds that a frame takes between a supervisor and its executor, that starting a process takes, and reaping it.
PIPE = 0.0005
START = 0.3
#: Seconds after a stall in which a timer that is over rings before anything else.
AFTER_STALL = 1e-5
#: How much faster than true time a clock may run that measures a pause.
RHO = 0.01
#: Seconds that a failed item waits at least when it did not ask for a time of its own (parts.DELAYS).
LEAST_PAUSE = 2.0
REAP = 0.002


@dataclass(slots=True)
class Run:
    """An item that runs in a process."""

    key: int
    deed: Deed
    execution: Execution
    broken: bool = False  # it fails with all others: when it is tried again is the platform's affair
    stop: Stop = Stop.NONE


class Kernel:
    """What one process is to the kernel of its machine: its timer, whether it is frozen, whether it is there."""

    def __init__(self, executor: SimExecutor, host: Host, journal: Journal, deeds: Callable[[int, int], Deed]) -> None:
        self.executor = executor
        self.host = host
        self.world = host.world
        self.journal = journal
        self.deeds = deeds
        self.name = f"{host.name}/{executor.pid}"
        self.alive = True
        self.frozen = False
        self.frozen_since = 0.0
        self.waiting: deque[tuple[int, Assign, int]] = deque()
        self.running: dict[int, Run] = {}
        self.stall = 0.0  # the process stands still for so long when it next arms its timer
        self._slots = executor.setup.slots
        self._deadman = Deadman(self._arm, self._clock)
        self._skew = 0.0
        self._stalled_until = 0.0
        self._armed = 0
        self._rings = False  # the timer rang while the process was frozen
        self._missed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._said_at = 0.0

    # ---- the process

    def later(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        """Has the process do something later: if it still is there, and not before it thaws."""
        self.world.after(delay, self._do, call, args)

    def _do(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.alive:
            return
        if self.frozen:
            self._missed.append((call, args))
        else:
            call(*args)

    def freeze(self) -> None:
        """SIGSTOP."""
        if self.alive and not self.frozen:
            self.frozen, self.frozen_since = True, self.world.now
            for run in self.running.values():
                run.execution.frozen = True
            self.world.say(self.name, "freezes")

    def thaw(self) -> None:
        """SIGCONT: a signal that waited is delivered first."""
        if not self.alive or not self.frozen:
            return
        if self.world.now < self._stalled_until:
            self.world.at(self._stalled_until, self.thaw)
            return
        self.world.say(self.name, "thaws")
        if self._rings:
            self.die(-signal.SIGALRM)
            return
        self.frozen = False
        for run in self.running.values():
            self.journal.thawed(run.execution)
        missed, self._missed = self._missed, []
        for call, args in missed:
            self._do(call, args)

    def die(self, code: int) -> None:
        """The process is gone; what it was doing ended when it last could do anything."""
        if not self.alive:
            return
        self.alive = False
        at = self.frozen_since if self.frozen else None
        running = set(self.running)
        for run in self.running.values():
            self.journal.end(run.execution, f"killed ({code})", at)
        self.running.clear()
        self.world.say(self.name, f"ends with code {code}")
        self.world.at(max(self._said_at + NEXT, self.world.now + REAP), self.executor.reaped_by_kernel, code, running)

    # ---- its timer

    def _clock(self) -> float:
        return self.host.clock.monotonic() + self._skew

    def _arm(self, delay: float) -> None:
        """setitimer. A stall here is a freeze between computing the delay and arming (L7)."""
        if self.stall and delay > 0:
            self._skew, self.stall = self._skew + self.stall, 0.0
        self._armed += 1
        if delay > 0:
            at = self.host.clock.true_at(self._clock() + delay)
            self.world.at(at, self._ring, self._armed)

    def _stood_still(self) -> None:
        """What its clock said meanwhile becomes true: the process goes on when the world is there, too."""
        stalled, self._skew = self._skew, 0.0
        if stalled:
            self.freeze()
            self._stalled_until = self.world.now + stalled + AFTER_STALL
            self.thaw()

    def _ring(self, number: int) -> None:
        if number != self._armed or not self.alive:
            return
        if self.frozen:
            self._rings = True
        else:
            self.world.say(self.name, "its timer rings")
            self.die(-signal.SIGALRM)

    # ---- frames from its supervisor

    def accept(self, frame: Any) -> None:
        """One frame."""
        match frame:
            case Setup():
                self.say(Ready())
            case Assign():
                self._assign(frame)
            case Timer():
                self._deadman.renewed(frame.number, frame.deadline)
                self._stood_still()
            case StopItems():
                self._stop(set(frame.keys), Stop(frame.why))
            case Release():
                self._release(lambda key: True, Ended(Outcome.HELD, "handed back: its worker is draining"))
            case Quit():
                self.die(0)

    def _assign(self, frame: Assign) -> None:
        keys = range(frame.first, frame.first + len(frame.kinds))
        if not self._deadman.admit(frame.number, frame.deadline, len(keys)):
            refused = Ended(Outcome.HELD, "its lease was over when it reached its executor")
            self.say(Done([], [row_of(key, refused) for key in keys]))
            return
        self.waiting.extend((key, frame, index) for index, key in enumerate(keys))
        self._stood_still()
        self.later(0.0001, self._fill)

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self._slots:
            key, frame, index = self.waiting.popleft()
            extra = frame.extras.get(index)
            if extra is not None and 0 < extra[3] <= self.host.clock.wall():
                self._done([], [row_of(key, LATE)])
                continue
            n = json.loads(frame.payloads[index])["n"]
            id_ = frame.ids[index]
            story = self.journal.stories.get(id_)
            deed = self.deeds(n, len(story.executions) if story else 0)
            broken = self.world.now < self.journal.broken_until
            deed = Deed("raise", min(deed.seconds, 1.0)) if broken else deed
            run = Run(key, deed, self.journal.begin(id_, n, frame.fences[index], self.name), broken)
            self.running[key] = run
            self.later(deed.seconds, self._finish, run)

    def _finish(self, run: Run) -> None:
        if self.running.get(run.key) is not run:
            return
        deed = run.deed
        if deed.kind == "crash" and run.stop is Stop.NONE:
            self.die(-signal.SIGSEGV)
            return
        ended = _end_of(deed, run.stop)
        self._end(run, ended, "ok" if ended is None else Outcome(ended.outcome).name.lower())
        if ended is not None and ended.outcome in (Outcome.RETRY, Outcome.THROTTLED) and not run.broken:
            pause = LEAST_PAUSE if ended.after is None else ended.after
            self.journal.expect_pause(run.execution.id, run.execution.n, self.world.now + pause / (1 + RHO))

    def _end(self, run: Run, ended: Ended | None, how: str) -> None:
        del self.running[run.key]
        self.journal.end(run.execution, how)
        self._done([] if ended is not None else [run.key], [] if ended is None else [row_of(run.key, ended)])
        self.later(0.0001, self._fill)

    def _done(self, succeeded: list[int], ended: list[Any]) -> None:
        self.say(Done(succeeded, ended))
        self._deadman.left(len(succeeded) + len(ended))

    def _release(self, wanted: Callable[[int], bool], ended: Ended) -> None:
        keys = [key for key, _, _ in self.waiting if wanted(key)]
        self.waiting = deque(row for row in self.waiting if not wanted(row[0]))
        if keys:
            self._done([], [row_of(key, ended) for key in keys])

    def _stop(self, keys: set[int], why: Stop) -> None:
        self._release(lambda key: key in keys, attempt.unstarted(why))
        for run in [run for run in self.running.values() if run.key in keys and run.stop is Stop.NONE]:
            if not run.deed.stubborn:
                run.stop = why
                self.later(0.01, self._finish, run)

    # ---- frames to its supervisor

    def say(self, frame: Any) -> None:
        """Sends a frame; it arrives even if the process dies meanwhile."""
        self._said_at = max(self._said_at + NEXT, self.world.now + PIPE)
        self.world.at(self._said_at, self.executor.heard, encode(frame))


def _end_of(deed: Deed, stop: Stop) -> Ended | None:
    if stop is not Stop.NONE:
        return attempt.stopped(stop)
    match deed.kind:
        case "ok":
            return None
        case "fatal":
            return attempt.raised(Fatal("it can never work"))
        case "later":
            return attempt.raised(RetryLater(after=deed.after))
        case "throttled":
            return attempt.raised(Throttled("slower", retry_after=deed.after or 1.0))
    return attempt.raised(ValueError("it failed"))


class SimExecutor(ExecutorProcess):
    """A supervisor's hold on a simulated process: what ExecutorProcess is to a real one."""

    _loop: SimLoop

    def __init__(self, setup: Setup, *, on_frame: Callable[..., None], on_death: Callable[..., None]) -> None:
        host = here()
        self.setup = setup
        self.live = set()
        self.notes = {}
        self.ready = self.retiring = False
        self.runs = self.covered = 0
        self.timer = self.started = 0.0
        self.why = ""
        self.culprits = {}
        self.kinds = {}
        self.was_running = set()
        self.dead = asyncio.Event()
        self._on_frame = on_frame
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()  # type: ignore[assignment]
        self._host = host
        host.processes_started += 1
        self._pid = host.processes_started
        self._frames = Frames(Ready | Done)
        self._sent_at = 0.0
        self.kernel = Kernel(self, host, host.journal, host.deeds)
        host.processes.append(self.kernel)

    @property
    def pid(self) -> int:
        return self._pid

    async def start(self) -> None:
        self.started = self._loop.time()
        await asyncio.sleep(START)
        self.send(self.setup)

    def send(self, frame: Any) -> None:
        """In order, on a socket that outlives neither end."""
        world = self._host.world
        self._sent_at = max(self._sent_at + NEXT, world.now + PIPE)
        world.at(self._sent_at, self.kernel._do, self.kernel.accept, (frame,))

    def set_timer(self, deadline: float) -> None:
        self.timer = deadline
        self.kernel.later(
            PIPE + PIPE * self._host.world.random.random(), self.kernel.accept, Timer(self.covered, deadline)
        )

    def kill(self, why: str) -> None:
        self.why = self.why or why
        self.kernel.die(-signal.SIGKILL)

    def watched_beat(self) -> float:
        """Nobody's event loop is blocked here."""
        return 0.0

    @property
    def board(self) -> Any:  # type: ignore[override]
        return self

    last_beat = watched_beat

    def heard(self, data: bytes) -> None:
        """A frame from the process reaches the supervisor, if that is still there."""
        if not self._loop.dead:
            self._loop.call_soon(self._hear, data)

    def _hear(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self._on_frame(self, frame)

    def reaped_by_kernel(self, code: int, running: set[int]) -> None:
        """The kernel tells the parent, if it is still there."""
        if self.kernel in self._host.processes:
            self._host.processes.remove(self.kernel)
        if not self._loop.dead:
            self._loop.call_soon(self._bury, code, running)

    def _bury(self, code: int, running: set[int]) -> None:
        self.was_running = running
        self.ready = False
        alone = self.setup.slots + self.setup.threads <= 2
        self._on_death(self, Death(code, self.why, self.culprits or None, alone=alone))
        self.dead.set()

    def close(self) -> None:
        """Nothing to close."""
