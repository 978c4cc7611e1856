"""A host: one process on one machine, which may be started, killed, frozen and started again."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from ...model.errors import Unavailable
from ...wire.channel import NETWORK
from .clock import MachineClock
from .loop import SimLoop
from .world import World

_HERE: contextvars.ContextVar[Host] = contextvars.ContextVar("tailrace-simulated-host")

#: Seconds that a disk or another thread takes: the least and the most, usually near the least.
LATENCY = (0.0002, 0.004)
#: Seconds after which a process that could not start is started again.
RESTART = 1.0


def here() -> Host:
    """The host whose code is running."""
    return _HERE.get()


def current() -> str:
    """The name of the host whose code is running; empty: none."""
    host = _HERE.get(None)
    return "" if host is None else host.name


class WriterEnded(Exception):
    """Planned: the writer of a file ends by itself."""


class Host:
    """One process slot of a machine. `main` makes the coroutine of a fresh process.

    disk      what survives the process
    network   what its code dials and serves on (None: none)
    processes what it started (kernel.Kernel); they outlive it for a moment, or until their timers ring
    """

    def __init__(
        self,
        world: World,
        name: str,
        clock: MachineClock,
        main: Callable[[], Coroutine[Any, Any, None]],
        disk: Any = None,
        network: Any = None,
    ) -> None:
        self.world = world
        self.name = name
        self.clock = clock
        self.disk = disk
        self.network = network
        self.journal: Any = None
        self.deeds: Any = None
        self.writes: Any = None
        self.tailers: Any = None  # of the process that was started last
        self.parts: list[Any] = []  # likewise
        self.processes: list[Any] = []
        self.ever: list[Any] = []  # all processes that it ever started
        self.files: dict[str, Any] = {}  # of its stores, by name: those that were opened last
        self.boot_after = 1.0  # seconds until its machine is up again after a power cut
        self.draining: asyncio.Event | None = None
        self.after_commit: Callable[[str], None] = lambda file: None
        self.silent = False  # its machine goes with it: nobody is told
        self.orphans: float | None = None  # seconds that what it started runs on without it; None: hardly any
        self.incarnation = 0
        self.started = 0.0  # true seconds
        self.frozen = False
        self.frozen_since = 0.0
        self.loop: SimLoop | None = None
        self.ended: Callable[[], None] = lambda: None  # told when the process is gone
        self.points: dict[str, int] = {}
        self.kill_at: tuple[str, int] | None = None  # a named moment, and which of its occurrences
        self.failure: BaseException | None = None
        self._main = main
        self._former: list[SimLoop] = []
        self._context = contextvars.copy_context()
        self._context.run(_HERE.set, self)
        self._context.run(NETWORK.set, network)
        world.hosts.append(self)

    @property
    def up(self) -> bool:
        """Whether there is a process, frozen or not."""
        return self.loop is not None

    def latency(self) -> float:
        """Seconds that the disk, or another thread, takes now."""
        least, most = LATENCY
        return least + (most - least) * self.world.random.random() ** 4

    def start(self) -> None:
        """Starts a fresh process."""
        if self.loop is not None:
            return
        self.incarnation += 1
        self.started = self.world.now
        self.frozen = False
        self.world.turning = None
        loop = self.loop = SimLoop(self.clock, self.latency)
        loop.context = self._context
        self._former.append(loop)
        self.world.say(self.name, f"starts ({self.incarnation})")
        loop.call_soon(self._begin, loop)

    def _begin(self, loop: SimLoop) -> None:
        task = loop.create_task(self._main(), name=f"{self.name}-main")
        task.add_done_callback(self._main_ended)

    def _main_ended(self, task: Any) -> None:
        if task.cancelled() or task.exception() is None:
            return
        if isinstance(task.exception(), Unavailable):  # it ends with a clear message, and whoever runs it tries again
            self.kill(f"exits: {task.exception()}")
            self.world.after(RESTART, self.start)
        else:
            self.failure = task.exception()
            self.world.say(self.name, f"its main task failed: {self.failure!r}")

    def kill(self, why: str = "killed") -> None:
        """Ends the process as SIGKILL would; nothing of it runs again."""
        if self.loop is None:
            return
        self.world.say(self.name, why)
        self.loop.kill()
        self.loop = None
        self.frozen = False
        self.world.turning = None
        self.ended()

    def reboot(self) -> None:
        """Cuts the power of its machine, which is there again `boot_after` seconds later. Its monotonic clock begins
        anew, and says more than before where the machine had been up for a shorter time than it takes to start."""
        self.silent = True
        self.kill("its power is cut")
        begins = self.world.random.choice((0.0, 3000.0))
        self.clock.offset = begins - self.clock.rate * self.world.now
        self.world.after(self.boot_after, self.start)

    def drain(self) -> None:
        """Asks the process to drain, as SIGTERM does."""
        if self.draining is not None:
            self.world.say(self.name, "drains")
            self.call(self.draining.set)

    def freeze(self) -> None:
        """Freezes the process, as SIGSTOP does: it does not run, its clock goes on."""
        if self.loop is not None and not self.frozen:
            self.frozen = True
            self.frozen_since = self.world.now
            self.world.turning, self.world.alone = None, 0
            self.world.say(self.name, "freezes")

    def thaw(self) -> None:
        """Lets a frozen process go on, as SIGCONT does."""
        if self.frozen:
            self.frozen = False
            self.world.turning, self.world.alone = None, 0
            self.world.say(self.name, "thaws")

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Has something run in the process, from outside; nothing happens when there is none."""
        if self.loop is not None:
            self.loop.call_soon(function, *args)

    def point(self, name: str) -> bool:
        """Counts a named moment around a durable write. Returns True when the process was killed here."""
        count = self.points[name] = self.points.get(name, 0) + 1
        if self.kill_at is not None and self.kill_at == (name, count):
            self.kill_at = None
            self.kill(f"killed at {name} ({count})")
            return True
        return False

    def complaints(self) -> list[str]:
        """Complaints of its event loops: errors that nobody heard of."""
        loops = [*self._former, *(process.loop for process in self.ever)]
        found = [each for loop in loops for each in loop.complaints]
        found = [each for each in found if not isinstance(each.get("exception"), WriterEnded)]
        return [f"{each.get('message')}: {each.get('exception')!r}" for each in found]

    def dispose(self) -> None:
        """Frees everything that its processes held, when the world has ended."""
        for loop in self._former:
            loop.dispose()
        for process in self.ever:
            process.dispose()
