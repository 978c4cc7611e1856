"""An executor process as the kernel of its machine sees it: its event loop, its timer, whether it is frozen, its death.

Real are all that runs in it (`executor_inside.py`) and `runtime.deadman.Deadman`, which decides when the timer rings.
The timer itself is the kernel's: it rings whether or not the supervisor runs, and kills a process that is frozen when
it wakes, before it does anything.
"""

from __future__ import annotations

import contextvars
import signal
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from ...runtime.board import Board
from ...runtime.deadman import Deadman, Relative
from ...runtime.frames import Timer, encode
from ...sdk.function import Function
from .exchange import NEXT
from .executor_inside import Inside
from .host import Host
from .loop import SimLoop
from .world import SPINNING, Spinning

#: Seconds that a frame takes between a supervisor and its executor, and reaping it.
PIPE = 0.0005
REAP = 0.002
#: Seconds after a stall in which a timer that is over rings before anything else.
AFTER_STALL = 1e-5


class Kernel:
    """One process. Its loop is no host's: it turns whenever something reaches it, and when one of its timers rings.
    `heard` gets the frames that it says, `reaped` its exit code.

    Invariant: nothing of it runs while it is frozen or once it is dead; what reaches a frozen one waits in `_missed`.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        functions: Mapping[str, Function[..., Any]],
        board: Board,
        heard: Callable[[bytes], None],
        reaped: Callable[[int], None],
    ) -> None:
        self.host = host
        self.world = host.world
        self.name = name
        self._heard = heard
        self._reaped = reaped
        self.alive = True
        self.frozen = False
        self.frozen_since = 0.0
        self.thawed_at = 0.0
        self.stall = 0.0  # the process stands still for so long when it next arms its timer
        self.loop = SimLoop(host.clock, host.latency)
        self.loop.context = contextvars.copy_context()
        self.deadman = Deadman(Relative(self._arm, self.clock), self.clock)
        of_process = (self.say, self.die, self._alarm_at, self._block)
        self.inside = Inside(host, name, self.loop, functions, board, self.deadman, *of_process)
        self._blocked_until = 0.0
        self._deaf_until = 0.0
        self._alarm = inf  # the true time at which the loop is woken
        self._skew = 0.0
        self._stalled_until = 0.0
        self._armed = 0
        self.rings_at = 0.0  # by its machine's monotonic clock; 0: never
        self._locked_at = 0.0
        self._rings = False  # the timer rang while the process was frozen
        self._missed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._said_at = 0.0

    # ---- the process

    def later(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        """Has the process do something later: if it still is there, and not before it thaws."""
        self.world.after(delay, self.do, call, args)

    def do(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Has the process do something now, or when it thaws."""
        if not self.alive:
            return
        if self.frozen or self._is_deaf:
            self._missed.append((call, args))
        else:
            call(*args)
            self._go_on()

    @property
    def _is_deaf(self) -> bool:
        return self.world.now < self._deaf_until

    def pulse(self) -> float:
        """The machine's monotonic clock when the control thread could last run."""
        last = self.frozen_since if self.frozen else self._locked_at if self._is_deaf else self.world.now
        return self.host.clock.monotonic() - self.host.clock.rate * (self.world.now - last)

    def _go_on(self) -> None:
        """Turns its loop for as long as there is something to run now."""
        loop, world = self.loop, self.world
        turns = 0
        while self.alive and not self.frozen and loop.ahead <= world.now and world.now >= self._blocked_until:
            turns += 1 + loop.turn()
            if turns > SPINNING:
                raise Spinning(f"{self.name}: more than {SPINNING} turns at {world.now:.6f} s")
        ahead = max(loop.ahead, self._blocked_until)
        if self.alive and ahead < self._alarm:
            self._alarm = ahead
            world.at(ahead, self._wake, ahead)

    def _block(self, seconds: float, lock: bool) -> None:
        """Keeps the loop from turning for so long; work that came before in this turn is over. Control frames are
        heard, unless the interpreter `lock` is kept as well; the kernel's timer rings all the same."""
        self.world.say(self.name, f"{'keeps the interpreter lock' if lock else 'blocks its loop'} for {seconds:.2f} s")
        self.world.count("kept locks" if lock else "blocked loops")
        self._blocked_until = self.world.now + seconds
        if lock:
            self._locked_at, self._deaf_until = self.world.now, self._blocked_until
            self.world.at(self._deaf_until, self.do, self._hear_missed, ())
        self.world.alone = 0

    def _alarm_at(self, time: float, call: Callable[[], None]) -> None:
        self.world.at(time, self.do, call, ())

    def _wake(self, alarm: float) -> None:
        if alarm == self._alarm:
            self._alarm = inf
            if self.alive and not self.frozen:
                self._go_on()

    def freeze(self) -> None:
        """Freezes the process, as SIGSTOP does."""
        if self.alive and not self.frozen:
            self.frozen, self.frozen_since = True, self.world.now
            self.world.alone = 0
            self.inside.freezes()
            self.world.say(self.name, "freezes")

    def thaw(self) -> None:
        """Lets the process go on, as SIGCONT does: a signal that waited is delivered first."""
        if not self.alive or not self.frozen:
            return
        if self.world.now < self._stalled_until:
            self.world.at(self._stalled_until, self.thaw)
            return
        self.world.say(self.name, "thaws")
        if self._rings:
            self.die(-signal.SIGALRM)
            return
        self.frozen, self.thawed_at = False, self.world.now
        self.inside.thaws()
        self._hear_missed()

    def _hear_missed(self) -> None:
        """Does what came while the process could not, unless it still cannot."""
        if self._is_deaf:
            return
        missed, self._missed = self._missed, []
        for call, args in missed:
            if self.alive and not self.frozen:
                call(*args)
            else:
                self.do(call, args)
        self._go_on()

    def die(self, code: int) -> None:
        """Ends the process. Its work ended when it last could do anything."""
        if not self.alive:
            return
        self.alive = False
        self.loop.kill()
        self.inside.dies(f"killed ({code})", self.frozen_since if self.frozen else None)
        self.world.say(self.name, f"ends with code {code}")
        self.world.at(max(self._said_at + NEXT, self.world.now + REAP), self._reaped, code)

    def dispose(self) -> None:
        """Frees everything that it held, when the world has ended."""
        self.alive = False
        self.inside.dispose()
        self.loop.dispose()

    # ---- its timer

    def clock(self) -> float:
        """CLOCK_MONOTONIC as the code that arms the timer reads it."""
        return self.host.clock.monotonic() + self._skew

    def _arm(self, delay: float) -> None:
        """Arms the timer, as setitimer does. A stall here is a freeze between computing the delay and arming (L7)."""
        if self.stall and delay > 0:
            self._skew, self.stall = self._skew + self.stall, 0.0
        self._armed += 1
        self.rings_at = self.clock() + delay if delay > 0 else 0.0
        if delay > 0:
            at = self.host.clock.true_at(self.clock() + delay)
            self.world.at(at, self._ring, self._armed)

    def _stood_still(self) -> None:
        """Makes up for a stall: the process stands still until the world has come to what its clock said meanwhile."""
        stalled, self._skew = self._skew, 0.0
        if stalled:
            self.freeze()
            over = self.host.clock.true_at(self.host.clock.monotonic() + stalled)  # when its clock says so
            self._stalled_until = max(over, self.world.now + stalled) + AFTER_STALL
            self.thaw()

    def _ring(self, number: int) -> None:
        if number != self._armed or not self.alive:
            return
        if self.frozen:
            self._rings = True
        else:
            self.world.say(self.name, "its timer rings")
            self.die(-signal.SIGALRM)

    # ---- frames

    def accept(self, frame: Any) -> None:
        """Takes one frame from its supervisor: on control, or for its loop."""
        if isinstance(frame, Timer):
            self.deadman.renewed(frame.number, frame.deadline)
            self._stood_still()
        else:
            self.loop.call_soon(self._accept, frame)

    def _accept(self, frame: Any) -> None:
        self.inside.accept(frame)
        self._stood_still()

    def say(self, frame: Any) -> None:
        """Sends a frame to its supervisor; it arrives even if the process dies meanwhile."""
        self._said_at = max(self._said_at + NEXT, self.world.now + PIPE)
        self.world.at(self._said_at, self._heard, encode(frame))
