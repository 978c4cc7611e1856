"""Runs the items of one executor process: `async def` on long-lived runner tasks, `def` on a bounded set of threads.

The hot path is `_runner`: take, record, decode, await, classify, report. No task, timer or log line per item (a task
costs 2.7 µs, a timeout 9.5 µs); the ends of one turn of the loop leave in one frame.
"""

from __future__ import annotations

import asyncio
import contextvars
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from time import perf_counter
from typing import Any

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.current_run import ITEM, RUN
from ..model.gathered import BEGIN
from ..model.outcome import EXPIRED_WHY, Outcome
from ..model.workload import Ended
from ..sdk.function import Function
from ..sdk.opened_content import Places
from ..sdk.payload import encode_result
from . import forked
from .blame import Blame
from .board import Board
from .deadman import Deadman
from .entry import ENTRY, KEY, NONE, Item, PreparedKind, Runner, gathered, is_late, make_context, with_used
from .frames import ROW_KEY, Assign, Done, EndRow, StopItems, Waits, row_of
from .notebook import Notebook
from .observing import observing
from .parents import FULL, Parents
from .rules import attempt
from .rules.attempt import Stop
from .rules.dispatch import SlotQueue
from .threads import ThreadRun, Threads
from .tracing import RunTracing

#: Items that one runner takes before others get a turn of the loop.
TURN = 64
#: Seconds between two looks at what threads have ended, while more waits for them.
POLL = 0.001
#: The end of an item whose time to start has passed.
LATE = Ended(Outcome.EXPIRED, EXPIRED_WHY)


class Engine:
    """The runs of one executor process. `send` writes a frame to the supervisor; it is called on the loop only. `bound`
    says how much memory functions may have, empty if they are not bounded; `spent` is called when the only item that
    ran has used it up and ended: the next item must have all of it.

    Invariants: an item that was admitted is waiting, running or ended, and ends by exactly one row; from its start
    until that row was sent its key is on the board; `deadman.left` counts every row that was sent.
    """

    def __init__(
        self,
        functions: Mapping[str, Function[..., Any]],
        *,
        slots: int,
        threads: int,
        result_bytes: int,
        timeout_grace: float,
        board: Board,
        deadman: Deadman,
        send: Callable[[Any], None],
        bound: str = "",
        spent: Callable[[], None] = lambda: None,
        places: Places | None = None,
        parents: int = 0,
        traces: RunTracing | None = None,
        timed: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._functions, self._slots = functions, slots
        self._result_bytes, self._grace = result_bytes, timeout_grace
        self._board, self._deadman = board, deadman
        self._send, self._clock = send, clock
        self._bound, self._spent, self._spender = bound, spent, 0
        self._places, self._alone = places or Places(), slots + threads <= 2
        self._loop, self._clean = asyncio.get_running_loop(), contextvars.copy_context()
        self._entries: dict[int, PreparedKind] = {}
        self._ran: dict[str, list[float]] = {name: [] for name in functions}
        self._waiting: SlotQueue[Item] = SlotQueue()
        self._runners: list[Runner] = []
        self._idle: list[Runner] = []
        self._cells = list(range(slots + parents, 0, -1))  # cells that no runner has
        self._crowd = self._spreading = False  # there are more runners than slots; some are being woken
        #: The item whose code the event loop is in; 0: it cannot be told. Safe from any thread.
        self.culprit = Blame(self._loop, self._runners).culprit
        shift, flush = partial(self._from_thread, self._shift), partial(self._from_thread, self.flush)
        self._parents = Parents(parents, max(slots, threads), board, self.culprit, shift)
        self._threads = Threads(threads, slots + parents + 1, board, self._parents, self._run_plain, flush)
        self._succeeded: list[int] = []
        self._ended: list[EndRow] = []
        self._flushing = self._polling = False
        self._notes = Notebook(self._loop, board, send, alone=self._alone)
        self._observing = observing(traces, timed, self._loop, send, clock)
        self._sweep: asyncio.TimerHandle | None = None
        #: Runs with a timeout: key → (when the process must end, the timeout). The control thread reads it.
        self.hard: dict[int, tuple[float, float]] = {}

    def assign(self, frame: Assign) -> None:
        """Admits a batch and starts as many of its items as there is room for."""
        entries = self._entries
        for number, name, priority, collection, tenant in frame.new_kinds:
            entries[number] = PreparedKind(self._functions[name], priority, collection, tenant, self._ran[name])
        keys = range(frame.first, frame.first + len(frame.kinds))
        if not self._deadman.admit(frame.number, frame.deadline, len(keys)):
            refused = Ended(Outcome.HELD, "its lease was over when it reached its executor")
            self._send(Done([], [row_of(key, refused) for key in keys]))
            return
        chosen = [entries[number] for number in frame.kinds]
        items: list[Item] = list(zip(keys, chosen, frame.payloads, repeat(frame), strict=False))
        frame.payloads = []  # a task that a run leaves behind holds the batch, by its context, but no payload of it
        if frame.dated and frame.extras:
            items = self._without_expired(items)
        one = {(entry.is_async, entry.priority) for entry in set(chosen)}
        if one == {(True, chosen[0].priority)}:
            self._waiting.extend(chosen[0].priority, items)
        else:
            for item in items:
                if item[ENTRY].is_async:
                    self._waiting.push(item[ENTRY].priority, item)
            self._threads.push([item for item in items if not item[ENTRY].is_async])
        self._spread()

    def _without_expired(self, items: list[Item]) -> list[Item]:
        now = self._clock.wall()  # one look for all: an item is late or it is not
        for key in (late := {item[KEY] for item in items if is_late(item, now)}):
            self._end(key, LATE)
        return [item for item in items if item[KEY] not in late]

    def stop_items(self, frame: StopItems) -> None:
        """Ends items: those that wait at once, `async def` by cancellation; `def` functions see `ctx.cancelled`."""
        keys, why = set(frame.keys), Stop(frame.why)
        self._end_unstarted(lambda item: item[KEY] in keys, attempt.unstarted(why))
        for runner in self._runners:
            if runner.key in keys and runner.stop is Stop.NONE:
                runner.cancel(why)
        self._threads.stop(keys, why)

    def release(self) -> None:
        """Hands back everything that has not started."""
        self._end_unstarted(lambda item: True, Ended(Outcome.HELD, "handed back: its worker is draining"))

    def _end_unstarted(self, wanted: Callable[[Item], bool], ended: Ended) -> None:
        for item in [*self._waiting.take(wanted), *self._threads.take(wanted)]:
            self._end(item[KEY], ended)

    # -- runners -----------------------------------------------------------------------------------------------------

    def _spread(self) -> None:
        if not self._spreading and len(self._waiting):
            self._spreading = True
            self._wake(1)

    def _wake(self, count: int) -> None:
        """Wakes some runners; while items still wait at the next turn of the loop, twice as many. So a batch that never
        waits is run by one runner, without a hundred others waking to find nothing."""
        waiting, most = len(self._waiting), self._slots + self._parents.runners
        for _ in range(min(count, waiting)):
            if self._idle:
                self._idle.pop().wake()
            elif len(self._runners) < most:
                self._start(self._cells.pop())
        if waiting and (self._idle or len(self._runners) < most):
            self._loop.call_soon(self._wake, count * 2)
        else:
            self._spreading = False

    def _start(self, cell: int) -> None:
        runner = Runner(cell, self._parents)
        self._runners.append(runner)
        self._crowd = len(self._runners) > self._slots
        context = self._clean.copy()
        context.run(RUN.set, runner)
        runner.task = asyncio.Task(self._runner(runner, context.copy()), loop=self._loop, context=context)
        runner.task.add_done_callback(partial(self._runner_ended, runner))

    def _runner_ended(self, runner: Runner, task: asyncio.Task[None]) -> None:
        """Puts a clean runner in the place of one that ended by itself, through something that a function left behind
        or for want of memory, and ends its item. The loop's handler is told why."""
        error = None if task.cancelled() else task.exception()
        if runner in self._runners:
            key = runner.key
            self._parents.ended(runner)
            self.hard.pop(key, None)
            self._replace(runner)
            if key:
                self._end(key, attempt.raised(error or asyncio.CancelledError(), runner.stop))
            self._spread()
        if error is not None and issubclass(type(error), Exception):
            raise error

    def _replace(self, runner: Runner) -> None:
        """Replaces a runner that a function left changed (context variables, a cancellation) by a clean one."""
        self._runners.remove(runner)
        self._start(runner.cell)

    def _crowded(self, runner: Runner) -> bool:
        """Removes a runner that took the place of a waiting run, once that goes on; False: it is needed."""
        if len(self._runners) <= self._slots + self._parents.runners:
            return False
        self._runners.remove(runner)
        self._cells.append(runner.cell)
        self._crowd = len(self._runners) > self._slots
        return True

    def _shift(self) -> None:
        """Wakes and reports as needed when runs began to wait for other work, or went on."""
        waits, goes_on = self._parents.changes()
        self._spread()
        self._threads.rouse()
        if waits or goes_on:
            self._send(Waits(waits, goes_on))

    async def _runner(self, runner: Runner, clean: contextvars.Context) -> None:  # noqa: PLR0912, PLR0915 - the hot path
        loop, pop, cells, cell = self._loop, self._waiting.pop, self._board.cells, runner.cell
        copy, seen, turn = contextvars.copy_context, self._observing, 0
        task = asyncio.current_task()
        assert task is not None
        while True:
            if self._crowd and self._crowded(runner):
                return None
            item = pop()
            if item is None:
                turn, frame = 0, NONE
                try:
                    await runner.rest(self._idle, loop)
                except asyncio.CancelledError:
                    return self._replace(runner)
                continue
            key, entry, payload, frame = item
            if frame.dated and is_late(item, self._clock.wall()):  # it expired while it waited here
                self._end(key, LATE)
                continue
            runner.entry = entry
            if entry.waits and not self._parents.admit(runner):
                self._end(key, FULL)
                continue
            cells[cell] = runner.key = key
            named = ITEM.set((entry, key, frame))
            if not turn:
                began = perf_counter()
            span = seen.begin(item) if seen is not None and frame.extras and key - frame.first in frame.extras else None
            try:
                if entry.timeout is not None:
                    self._watch(key, entry.timeout, runner)
                arguments: Any = await gathered(item).awaited() if payload.startswith(BEGIN) else entry.decode(payload)
                if entry.context:
                    arguments[entry.context] = runner.context = make_context(
                        item, runner.deadline, self._notes.take, self._places
                    )
                value: Any = await entry.call(**arguments)
                if forked.child:
                    forked.end()
                returned = value is not None and entry.results
                ended = attempt.returned(encode_result(value), self._result_bytes) if returned else None
            except BaseException as error:
                ended = self._raised(key, error, runner.stop, entry)
            if seen is not None:  # the next run begins here: one look at the clock for each
                before, began = began, perf_counter()
                if ended is None and span is None and entry.ran:
                    entry.ran.append(began - before)
                else:
                    seen.end(entry, ended, began - before, span)
            ITEM.reset(named)
            ended = with_used(ended, runner.context, wanted=frame.wants_result) if entry.context else ended
            if ended is None or (ended.result is not None and not frame.wants_result):
                self._succeeded.append(key)
                if not self._flushing:
                    self._flushing = True
                    loop.call_soon(self.flush)
            else:
                self._end(key, ended)
            if runner.counted:
                self._parents.ended(runner)
            runner.key, runner.context = 0, None
            item, payload, arguments, value, ended = None, b"", None, None, None  # else one that rests keeps them
            if entry.timeout is not None:
                runner.deadline = None
                self.hard.pop(key, None)
            runner.forgive()
            if task.cancelling() or copy() != clean:
                return self._replace(runner)
            turn += 1
            if turn >= TURN:
                turn = 0
                await asyncio.sleep(0)

    # -- threads -----------------------------------------------------------------------------------------------------

    def _run_plain(self, item: Item, run: ThreadRun) -> Ended | None:
        key, entry, payload, frame = item
        if frame.dated and is_late(item, self._clock.wall()):
            return LATE
        if entry.waits and not self._parents.admit(run):
            return FULL
        deadline, seen = None, self._observing
        context = self._clean.copy()
        context.run(RUN.set, run)
        context.run(ITEM.set, (entry, key, frame))
        span = context.run(seen.begin, item) if seen is not None and frame.extras else None
        began = perf_counter()
        try:
            if entry.timeout is not None:
                run.deadline = deadline = self._clock.monotonic() + entry.timeout
                self.hard[key] = (deadline + self._grace, entry.timeout)
            arguments = gathered(item).read() if payload.startswith(BEGIN) else entry.decode(payload)
            if entry.context:
                arguments[entry.context] = run.context = make_context(
                    item, deadline, self._notes.from_thread, self._places
                )
            value = context.run(entry.call, **arguments)
            if forked.child:
                forked.end()
            returned = value is not None and entry.results
            ended = attempt.returned(encode_result(value), self._result_bytes) if returned else None
        except BaseException as error:
            ended = self._raised(key, error, run.stop, entry)
        if seen is not None:
            seen.end_in_thread(entry, ended, perf_counter() - began, span, context)
        if deadline is not None:
            self.hard.pop(key, None)
        ended = with_used(ended, run.context, wanted=frame.wants_result) if entry.context else ended
        return None if ended is not None and ended.result is not None and not frame.wants_result else ended

    def _raised(self, key: int, error: BaseException, stop: Stop, entry: PreparedKind) -> Ended:
        if forked.child:
            forked.end(error)
        if self._bound and attempt.out_of_memory(error):
            traceback.clear_frames(attempt.traceback_of(error))  # frees its objects: even a report needs memory
            self._spender = key
        return attempt.raised(error, stop, entry.timeout, self._bound, entry.signs)

    def _from_thread(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(call, *arguments)

    # -- timeouts: one timer for all runners, at the earliest --------------------------------------------------------

    def _watch(self, key: int, timeout: float, runner: Runner) -> None:
        runner.deadline = when = self._clock.monotonic() + timeout
        self.hard[key] = (when + self._grace, timeout)
        if self._sweep is None or when < self._sweep.when():
            if self._sweep is not None:
                self._sweep.cancel()
            self._sweep = self._loop.call_at(when, self._sweep_timeouts)

    def _sweep_timeouts(self) -> None:
        now = self._clock.monotonic()
        following = None
        for runner in self._runners:
            if runner.deadline is None or runner.stop is not Stop.NONE:
                continue
            if runner.deadline <= now:
                runner.cancel(Stop.TIMEOUT)
            elif following is None or runner.deadline < following:
                following = runner.deadline
        self._sweep = None if following is None else self._loop.call_at(following, self._sweep_timeouts)

    # -- reports -----------------------------------------------------------------------------------------------------

    def _end(self, key: int, ended: Ended) -> None:
        self._ended.append(row_of(key, ended))
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Sends everything that ended, in one frame."""
        self._flushing = False
        succeeded, ended = self.unreported()
        if self._observing is not None:
            self._observing.collect()
        if not self._polling and not self._threads.rest():
            self._polling = True
            self._loop.call_later(POLL, self._poll)
        if self._spender and self._alone and any(row[ROW_KEY] == self._spender for row in ended):
            self._spent()
        elif succeeded or ended:
            self._send(Done(succeeded, ended))
            self._succeeded, self._ended = [], []
            self._deadman.left(len(succeeded) + len(ended))

    def _poll(self) -> None:
        self._polling = False
        self.flush()

    def unreported(self) -> tuple[list[int], list[EndRow]]:
        """Keys that succeeded and rows that ended, not sent yet."""
        for key, ended in self._threads.collect():
            self.hard.pop(key, None)  # its thread may have been interrupted before it could say so
            if ended is None:
                self._succeeded.append(key)
            else:
                self._ended.append(row_of(key, ended))
        return self._succeeded, self._ended
