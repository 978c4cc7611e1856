"""A supervisor's hold on a simulated executor process (`kernel.py`)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Any

from ...model.lease import LeaseSizes
from ...runtime.executors import ExecutorProcess
from ...runtime.frames import Done, Dying, ExecutorSetup, Failed, Frames, Notes, Ready, Timer, Waits
from ...runtime.rules.silence import LOOKS, Silence
from ...runtime.rules.suspicion import ProcessDeath
from ...sdk.function import Function
from .exchange import NEXT
from .executor_inside import SimBoard
from .host import here
from .kernel import PIPE, Kernel
from .loop import SimLoop

#: Seconds that starting a process takes; and between two looks of its supervisor.
START = 0.3
LOOK = LeaseSizes().heartbeat / LOOKS


class _ArmedTimers:
    """The memory in which a guard reads to what the timer of a process is armed."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def armed(self, page: int) -> float:
        """The time to which it is armed, 0: it is not."""
        return self._kernel.rings_at


class SimExecutor(ExecutorProcess):
    """A supervisor's hold on a simulated process: the counterpart of ExecutorProcess."""

    _loop: SimLoop

    def __init__(
        self,
        setup: ExecutorSetup,
        *,
        functions: Mapping[str, Function[..., Any]],
        on_frame: Callable[..., None],
        on_death: Callable[..., None],
    ) -> None:
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
        self.was_running, self.was_waiting, self.waits = set(), set(), set()
        self.given = 0.0
        self.dead = asyncio.Event()
        self.silence = Silence(LOOK, host.clock.monotonic())
        self.board = SimBoard(setup.cells)
        self._pid_namespace, self._what, self._overdue, self._armed = False, "", False, 0.0
        self._on_frame = on_frame
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()  # type: ignore[assignment]
        self._host = host
        self._pid = len(host.ever) + 1
        self._frames = Frames(Ready | Failed | Done | Notes | Waits | Dying)
        self._sent_at = 0.0
        name = f"{host.name}/{self._pid}"
        self.kernel = Kernel(host, name, functions, self.board, self._heard, self._reaped_by_kernel)
        self.board.pulse = self.kernel.pulse
        self._watch: Any = _ArmedTimers(self.kernel)
        self._page = 0
        host.processes.append(self.kernel)
        host.ever.append(self.kernel)

    @property
    def pid(self) -> int:
        return self._pid

    async def start(self) -> None:
        self.started = self._loop.time()
        await asyncio.sleep(START)
        self.send(self.setup)

    def send(self, frame: Any) -> None:
        """Sends a frame to the process: in order, on a socket that outlives neither end."""
        world = self._host.world
        self._sent_at = max(self._sent_at + NEXT, world.now + PIPE)
        world.at(self._sent_at, self.kernel.do, self.kernel.accept, (frame,))

    def set_timer(self, deadline: float) -> None:
        self.timer = deadline
        self.kernel.later(
            PIPE + PIPE * self._host.world.random.random(), self.kernel.accept, Timer(self.covered, deadline)
        )

    def kill(self, why: str) -> None:
        self.why = self.why or why
        self.kernel.die(-signal.SIGKILL)

    def end_what_goes_on(self, deadline: float) -> None:
        """Does nothing: nobody starts anything here."""

    def _heard(self, data: bytes) -> None:
        """Hands a frame from the process to the supervisor, if that is still there."""
        if not self._loop.dead:
            self._loop.call_soon(self._hear, data)

    def _hear(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self._accept(frame)

    def _reaped_by_kernel(self, code: int) -> None:
        """Tells the supervisor the exit code, if it is still there."""
        if self.kernel in self._host.processes:
            self._host.processes.remove(self.kernel)
        if not self._loop.dead:
            self._loop.call_soon(self._bury, code)

    def _bury(self, code: int) -> None:
        self.was_running, self.was_waiting = self.board.running() & self.live, self.board.waiting() & self.live
        self.ready = False
        self._overdue, self._armed = code == -signal.SIGALRM, self.kernel.rings_at
        self._look_whose_doing(self._host.clock.monotonic())
        alone = self.setup.slots + self.setup.threads <= 2
        self._on_death(self, ProcessDeath(code, self.why, self.culprits or None, self._what, alone=alone))
        self.dead.set()

    def close(self) -> None:
        """Does nothing: there is nothing to close."""
