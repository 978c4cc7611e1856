"""An executor process: `python -m tailrace.runtime.executor_main WORK CONTROL BOARD SLOTS WATCH PAGE`, of which all but
SLOTS and PAGE are file descriptors. In a PID namespace the process id follows by which its worker knows it.

Started fresh, never forked, by a supervisor. Its main thread runs the event loop; a thread of its own listens to the
control socket, so that code which blocks the loop stops neither renewals nor the watch over it. When the supervisor is
gone, so is this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from ..foundation import otel, telemetry
from ..foundation.current_run import describe_by
from ..model.errors import TailraceError
from ..model.units import size_text
from ..sdk.opened_content import Places
from . import forked, function_output, kept_sources, memory
from .board import Board
from .deadman import Deadman
from .engine import Engine
from .entry import described
from .frames import (
    Assign,
    Dying,
    EndRow,
    ExecutorSetup,
    Failed,
    Frames,
    Notes,
    Quit,
    Ready,
    Release,
    StopItems,
    Timer,
    encode,
    row_of,
)
from .guard_memory import WatchPage
from .kernel_timer import kernel_timer
from .loader import load_functions
from .process_table import NO_MARKS, VARIABLE, end_until_none_is_left, look_up
from .rules import attempt
from .rules.ending import Ward
from .rules.overdue import Overdue
from .rules.suspicion import EXHAUSTED
from .threads import THREAD
from .tracing import tracing

#: The mark in the environment of everything that this process starts. Functions may change the environment later.
MARK = os.environ.get(VARIABLE, "")
#: Exit code of a process that ended itself because of what one of its items did.
CULPRIT = 70
#: Seconds that processes which it started get to end, when its supervisor has gone, before it ends itself.
PATIENCE = 1.0
#: Seconds that its last spans get to be exported.
LAST_SPANS = 0.5
#: The loop's heartbeat, seconds.
BEAT = 1.0
#: Name of the thread that listens to the control socket.
CONTROL = "tailrace-control"


class Work(asyncio.Protocol):
    """The work socket: frames in, outcomes out."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._frames = Frames(ExecutorSetup | Assign | StopItems | Release | Quit)

    def data_received(self, data: bytes) -> None:
        """Handles each frame that is complete."""
        for frame in self._frames.feed(data):
            self._executor.accept(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends this process and all that it started: the supervisor is gone."""
        end_group()


class Executor:
    """An executor process: its loop's side of the work socket, and its engine once set up."""

    def __init__(self, control: socket.socket, board: Board, cell: WatchPage) -> None:
        self._control = control
        self._board = board
        self._timer = kernel_timer()
        self._deadman = Deadman(self._timer, told=cell.tell_armed)
        self._engine: Engine | None = None
        self._setup: ExecutorSetup | None = None
        self._transport: Any = None
        self._loop = asyncio.get_running_loop()
        self._dying = threading.Lock()

    async def serve(self, work: socket.socket) -> None:
        """Listens until the process is told to quit."""
        self._transport, _ = await self._loop.create_unix_connection(lambda: Work(self), sock=work)

    def accept(self, frame: Any) -> None:
        """Handles one frame from the supervisor."""
        engine = self._engine
        match frame:
            case Assign() if engine:
                engine.assign(frame)
            case StopItems() if engine:
                engine.stop_items(frame)
            case Release() if engine:
                engine.release()
            case Quit():
                self._loop.stop()
            case ExecutorSetup():
                self._set_up(frame)

    def send(self, frame: Ready | Failed | Notes | Any) -> None:
        """Writes a frame to the supervisor."""
        self._transport.write(encode(frame))

    def _set_up(self, setup: ExecutorSetup) -> None:
        sys.path[:] = setup.path
        kept_sources.serve(setup.sources)
        try:
            loaded = load_functions(setup.modules)
            functions = {name: loaded.functions[name] for name in setup.functions}
        except KeyError as error:
            return self.send(Failed(f"function {error} was there when the worker started, but is not any more"))
        except TailraceError as error:
            return self.send(Failed(str(error)))
        self._setup = setup
        self._engine = Engine(
            functions,
            slots=setup.slots,
            threads=setup.threads,
            result_bytes=setup.result_bytes,
            timeout_grace=setup.timeout_grace,
            board=self._board,
            deadman=self._deadman,
            send=self.send,
            bound=f"{size_text(setup.memory)} ({setup.memory_from})" if setup.memory else "",
            spent=self._spent,
            places=Places.revealed(setup.places),
            parents=setup.parents,
            traces=tracing(),
            timed=setup.timed,
        )
        self._beat()
        threading.Thread(target=self._listen, args=(setup, self._engine), name=CONTROL, daemon=True).start()
        if setup.memory:
            memory.bound(setup.memory)
            memory.end_when_exhausted(self._loop, {CONTROL, THREAD}, lambda: end_process(EXHAUSTED))
        self.send(Ready())
        return None

    def _beat(self) -> None:
        self._board.cells[0] = time.monotonic_ns()
        if self._timer.look():
            self._deadman.again()
        self._loop.call_later(BEAT, self._beat)

    # -- the control thread ------------------------------------------------------------------------------------------

    def _listen(self, setup: ExecutorSetup, engine: Engine) -> None:
        frames = Frames(Timer)
        cells = self._board.cells
        patience = max(0.05, min(BEAT, setup.pulse, setup.block_limit / 4))
        vigil = Overdue(patience, setup.timeout_grace, time.monotonic())
        while True:
            cells[-1] = time.monotonic_ns()
            self._control.settimeout(vigil.pause(dict(engine.hard), time.monotonic()))
            try:
                data = self._control.recv(1 << 16)
                if not data:
                    end_group()
                for timer in frames.feed(data):
                    self._deadman.renewed(timer.number, timer.deadline)
            except TimeoutError:
                pass
            except OSError:
                end_group()
            now = time.monotonic()
            hard = dict(engine.hard)
            if vigil.looks(hard, now):
                self._look(setup, engine, vigil.overdue(hard, now), now)

    def _look(self, setup: ExecutorSetup, engine: Engine, overdue: tuple[int, float] | None, now: float) -> None:
        if overdue is not None:
            key, timeout = overdue
            why = f"a function did not end {setup.timeout_grace:g} s after its timeout"
            self._die(engine, why, key, attempt.timed_out(timeout))
        # The heartbeat comes once a BEAT: that much silence is no blocking.
        if now - self._board.last_beat() > setup.block_limit + BEAT:
            key = engine.culprit()
            if key:
                self._die(engine, "a function blocked the event loop", key, attempt.blocked(setup.block_limit))
            else:  # a callback, which is no task's: all that runs here are suspects
                self._die(engine, "", 0, None, "had its event loop blocked")

    def _die(self, engine: Engine, why: str, key: int, ended: Any, what: str = "") -> None:
        """Reports why, then ends the process; on the loop if it still turns, so that nothing it is sending gets
        lost."""
        spoken = threading.Event()
        culprit = row_of(key, ended) if key else None
        self._loop.call_soon_threadsafe(self._speak_and_end, engine, why, culprit, spoken, what)
        if not spoken.wait(0.5):
            self._speak_and_end(engine, why, culprit, spoken, what)

    def _speak_and_end(
        self, engine: Engine, why: str, culprit: EndRow | None, spoken: threading.Event, what: str = ""
    ) -> None:
        with self._dying:
            succeeded, rows = engine.unreported()
            with contextlib.suppress(OSError):
                self._control.settimeout(2.0)
                self._control.sendall(encode(Dying(why, culprit, list(succeeded), list(rows), what)))
            spoken.set()
            end_process(CULPRIT)

    def _spent(self) -> None:
        """Ends the process of an item that used its memory up and has ended: the next one finds all of it in a fresh
        process."""
        assert self._engine is not None
        self._speak_and_end(self._engine, "its memory was used up", None, threading.Event())


def end_process(code: int) -> None:
    """Ends this process now, whatever its threads do, once the text that it printed is flushed."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
        if (spans := otel.queue()) is not None and code == 0:
            spans.close(LAST_SPANS)
    os._exit(code)


def end_group() -> None:
    """Ends this process and all that it started: it was the leader of a group of its own. The guard does the same, if
    there still is one. A fork of this process ends alone."""
    if forked.child:
        forked.end(RuntimeError("a function's code went on in a process that it had forked"))
    with contextlib.suppress(OSError):  # it may open no more
        me = look_up(os.getpid(), NO_MARKS)
        if me is not None:
            end_until_none_is_left(Ward(MARK, me.pid, me.start), {me.pid, 1}, PATIENCE)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Runs an executor process."""
    work_fd, control_fd, board_fd, cells, watch_fd, page, *known_as = map(int, sys.argv[1:])
    function_output.never_fail()  # before the log has standard error
    describe_by(described)
    telemetry.set_up("executor", number=known_as[0] if known_as else 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the supervisor drains; a handler, unlike SIG_IGN, is not inherited
    for fd in (work_fd, control_fd, board_fd):
        os.set_inheritable(fd, False)
    cell = WatchPage(watch_fd, page)
    os.close(watch_fd)
    work, control = socket.socket(fileno=work_fd), socket.socket(fileno=control_fd)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    forked.part(loop, work, control)
    quitting = False

    async def start() -> None:
        await Executor(control, Board(board_fd, cells), cell).serve(work)

    loop.run_until_complete(start())
    while not quitting:
        # A task of a user's that raises SystemExit or KeyboardInterrupt ends the loop's run, not this process.
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            try:
                loop.run_forever()
            except MemoryError:  # an ordinary exit would wait for the functions' threads
                end_process(EXHAUSTED)
            quitting = True
    end_process(0)


if __name__ == "__main__":
    main()
