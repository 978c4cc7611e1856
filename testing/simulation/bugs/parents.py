"""Mistakes with runs that wait for other work (runtime/parents.py), with time-outs of `def` functions, and with an
event loop that is blocked."""

from __future__ import annotations

from typing import Any

from ....runtime.engine import Engine
from ....runtime.frames import Timer
from ....runtime.parents import Parents
from ....scheduler.core import Core
from ..executor import SimExecutor
from ..kernel import Kernel
from ..planting import Bug, breaks, bug, instead

# ---- runs that wait


@bug
def _a_run_that_waits_keeps_its_place() -> Bug:
    return instead(Parents, "_count", lambda self, holder, key, step: None)


@bug
def _a_scheduler_does_not_hear_who_waits() -> Bug:
    return instead(Core, "waits", lambda self, worker, waits, goes_on, now: None)


# ---- threads


@bug
def _a_thread_has_no_timeout() -> Bug:
    real = Engine._run_plain

    def run(self: Engine, item: Any, thread: Any) -> Any:
        timeout, item[1].timeout = item[1].timeout, None
        try:
            return real(self, item, thread)
        finally:
            item[1].timeout = timeout

    return instead(Engine, "_run_plain", run)


@bug
def _what_a_thread_ran_is_still_timed_when_it_is_over() -> Bug:
    class KeptItems(dict[int, Any]):
        def pop(self, *which: Any) -> Any:
            return self.get(*which)

    real = Engine.__init__

    def made(self: Engine, *args: Any, **options: Any) -> None:
        real(self, *args, **options)
        self.hard = KeptItems()

    return instead(Engine, "__init__", made)


# ---- a blocked loop


@breaks("L7", by="unexplained")
def _a_deadline_waits_for_the_event_loop() -> Bug:
    """Delivers a deadline on the event loop, as if it came with the work and not on control."""

    def soon(kernel: Kernel, timer: Timer) -> None:
        kernel.loop.call_soon(kernel.accept, timer)

    def set_timer(self: SimExecutor, deadline: float) -> None:
        self.timer = deadline
        kernel, timer = self.kernel, Timer(self.covered, deadline)
        kernel.later(0.001, soon, kernel, timer)

    return instead(SimExecutor, "set_timer", set_timer)
