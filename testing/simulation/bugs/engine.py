"""Mistakes in an executor: in its engine (runtime/engine.py), and in how time-outs end (runtime/rules/overdue.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ....model.outcome import Outcome
from ....model.workload import Ended
from ....runtime import pool as pool_
from ....runtime.engine import Engine
from ....runtime.entry import Item
from ....runtime.frames import Assign
from ....runtime.rules import attempt, suspicion
from ....runtime.rules.overdue import Overdue
from ....runtime.rules.suspicion import ProcessDeath
from ....runtime.threads import Threads
from ..planting import Bug, bug, instead

# ---- what is told of an item


@bug
def _what_was_stopped_while_it_waited_starts() -> Bug:
    def end_unstarted(self: Engine, wanted: Callable[[Item], bool], ended: Ended) -> None:
        for item in [item for lane in self._waiting.lanes for item in lane if wanted(item)]:
            self._end(item[0], ended)

    return instead(Engine, "_end_unstarted", end_unstarted)


@bug
def _an_end_is_told_twice() -> Bug:
    real = Engine.flush

    def flush(self: Engine) -> None:
        succeeded = self._succeeded
        real(self)
        if len(succeeded) > 1:
            self._succeeded.append(succeeded[0])

    return instead(Engine, "flush", flush)


@bug
def _what_was_stopped_ends_as_if_it_had_failed() -> Bug:
    real = attempt.raised

    def raised(error: BaseException, stop: attempt.Stop = attempt.Stop.NONE, *more: Any) -> Ended:
        return real(error, attempt.Stop.NONE, *more)

    return instead(attempt, "raised", raised)


@bug
def _a_stop_takes_all_that_runs_beside_it() -> Bug:
    real = Engine.stop_items

    def stop_items(self: Engine, frame: Any) -> None:
        frame.keys = [*frame.keys, *(runner.key for runner in self._runners if runner.key)]
        real(self, frame)

    return instead(Engine, "stop_items", stop_items)


# ---- threads


@bug
def _what_was_taken_from_a_thread_starts() -> Bug:
    def take(self: Threads, wanted: Callable[[Item], bool]) -> list[Item]:
        return [item for lane in self._waiting.lanes for item in lane if wanted(item)]

    return instead(Threads, "take", take)


@bug
def _the_loop_is_woken_for_the_first_end_of_a_thread_alone() -> Bug:
    return instead(Threads, "rest", lambda self: True)


# ---- time-outs


@bug
def _a_timeout_is_counted_from_arrival() -> Bug:
    real_assign, real_watch = Engine.assign, Engine._watch

    def assign(self: Any, frame: Assign) -> None:
        came = self.__dict__.setdefault("came", {})
        came.update(dict.fromkeys(range(frame.first, frame.first + len(frame.kinds)), self._clock.monotonic()))
        real_assign(self, frame)

    def watch(self: Any, key: int, timeout: float, runner: Any) -> None:
        real_watch(self, key, max(0.0, timeout - (self._clock.monotonic() - self.came[key])), runner)

    stack = ExitStack()
    stack.enter_context(instead(Engine, "assign", assign))
    stack.enter_context(instead(Engine, "_watch", watch))
    return stack


@bug
def _a_later_timeout_puts_off_an_earlier_one() -> Bug:
    real = Engine._watch

    def watch(self: Engine, key: int, timeout: float, runner: Any) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        real(self, key, timeout, runner)

    return instead(Engine, "_watch", watch)


@bug
def _a_timeout_costs_no_attempt() -> Bug:
    return instead(attempt, "timed_out", lambda timeout: Ended(Outcome.LOST, "timed out"))


@bug
def _who_ends_its_process_by_its_timeout_spends_no_attempt() -> Bug:
    def verdicts(live: Any, running: Any, death: ProcessDeath, *more: Any) -> dict[int, Ended]:
        return suspicion.verdicts(live, running, replace(death, culprits=None), *more)

    return instead(pool_, "verdicts", verdicts)


@bug
def _who_ignores_its_timeout_goes_on() -> Bug:
    return instead(Overdue, "overdue", lambda self, hard, now: None)


@bug
def _a_process_that_stood_still_is_blamed() -> Bug:
    real = Overdue.looks

    def looks(self: Overdue, hard: Any, now: float) -> bool:
        self._looked = now
        return real(self, hard, now)

    return instead(Overdue, "looks", looks)
