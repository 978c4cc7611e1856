"""An executor process: `python -m tailrace.runtime.executor_main WORK CONTROL BOARD SLOTS` (file descriptors).

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

from ..sdk import telemetry
from ..sdk.model.errors import TailraceError
from ..sdk.model.units import size_text
from ..sdk.opened import Places
from . import memory
from .board import Board
from .deadman import Deadman
from .engine import Engine
from .frames import (
    Assign,
    Dying,
    EndRow,
    Failed,
    Frames,
    Notes,
    Quit,
    Ready,
    Release,
    Setup,
    StopItems,
    Timer,
    encode,
    row_of,
)
from .loader import load_functions
from .rules import attempt
from .rules.suspicion import EXHAUSTED
from .threads import THREAD

#: Exit code of a process that ended itself because of what one of its items did.
CULPRIT = 70
#: The loop's heartbeat, seconds.
BEAT = 1.0
#: Name of the thread that listens to the control socket.
CONTROL = "tailrace-control"


class Work(asyncio.Protocol):
    """The work socket: frames in, outcomes out."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._frames = Frames(Setup | Assign | StopItems | Release | Quit)

    def data_received(self, data: bytes) -> None:
        """Handles each frame that is complete."""
        for frame in self._frames.feed(data):
            self._executor.accept(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """The supervisor is gone."""
        end_group()


class Executor:
    """This process: its loop's side of the work socket, and its engine once set up."""

    def __init__(self, control: socket.socket, board: Board) -> None:
        self._control = control
        self._board = board
        self._deadman = Deadman()
        self._engine: Engine | None = None
        self._setup: Setup | None = None
        self._transport: Any = None
        self._loop = asyncio.get_running_loop()
        self._dying = threading.Lock()

    async def serve(self, work: socket.socket) -> None:
        """Listens until the process is told to quit."""
        self._transport, _ = await self._loop.create_unix_connection(lambda: Work(self), sock=work)

    def accept(self, frame: Any) -> None:
        """One frame from the supervisor."""
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
            case Setup():
                self._set_up(frame)

    def send(self, frame: Ready | Failed | Notes | Any) -> None:
        """A frame to the supervisor."""
        self._transport.write(encode(frame))

    def _set_up(self, setup: Setup) -> None:
        sys.path[:] = setup.path
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
        self._loop.call_later(BEAT, self._beat)

    # -- the control thread ------------------------------------------------------------------------------------------

    def _listen(self, setup: Setup, engine: Engine) -> None:
        frames = Frames(Timer)
        patience = max(0.05, min(BEAT, setup.block_limit / 4))
        turned = time.monotonic()
        while True:
            self._control.settimeout(self._next_look(engine, patience))
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
            frozen = now - turned > 2 * patience + 1.0  # this thread could not run either: nobody's fault
            turned = now
            self._look(setup, engine, now, frozen)

    @staticmethod
    def _next_look(engine: Engine, patience: float) -> float:
        hard = min((when for when, _ in list(engine.hard.values())), default=None)
        return patience if hard is None else max(0.01, min(patience, hard - time.monotonic()))

    def _look(self, setup: Setup, engine: Engine, now: float, frozen: bool) -> None:
        for key, (when, timeout) in list(engine.hard.items()):
            if now > when and not frozen:
                ended = attempt.timed_out(timeout)
                self._die(engine, f"a function did not end {setup.timeout_grace:g} s after its timeout", key, ended)
        # The heartbeat comes once a BEAT: that much silence is no blocking.
        if not frozen and now - self._board.last_beat() > setup.block_limit + BEAT:
            key = engine.culprit()
            self._die(engine, "a function blocked the event loop", key, attempt.blocked(setup.block_limit))

    def _die(self, engine: Engine, why: str, key: int, ended: Any) -> None:
        """Last words, then the end; on the loop if it still turns, so that nothing it is sending gets lost."""
        spoken = threading.Event()
        culprit = row_of(key, ended) if key else None
        self._loop.call_soon_threadsafe(self._speak_and_end, engine, why, culprit, spoken)
        if not spoken.wait(0.5):
            self._speak_and_end(engine, why, culprit, spoken)

    def _speak_and_end(self, engine: Engine, why: str, culprit: EndRow | None, spoken: threading.Event) -> None:
        with self._dying:
            succeeded, rows = engine.unreported()
            with contextlib.suppress(OSError):
                self._control.settimeout(2.0)
                self._control.sendall(encode(Dying(why, culprit, list(succeeded), list(rows))))
            spoken.set()
            end_process(CULPRIT)

    def _spent(self) -> None:
        """An item used its memory up and has ended: the next one shall find all of it in a fresh process."""
        assert self._engine is not None
        self._speak_and_end(self._engine, "its memory was used up", None, threading.Event())


def end_process(code: int) -> None:
    """Ends this process now, whatever its threads do, after what it printed."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def end_group() -> None:
    """Ends this process and what it started: it was the leader of a group of its own."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """The process."""
    telemetry.set_up("executor")
    work_fd, control_fd, board_fd, cells = map(int, sys.argv[1:5])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the supervisor drains; a handler, unlike SIG_IGN, is not inherited
    for fd in (work_fd, control_fd, board_fd):
        os.set_inheritable(fd, False)
    work, control = socket.socket(fileno=work_fd), socket.socket(fileno=control_fd)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    quitting = False

    async def start() -> None:
        await Executor(control, Board(board_fd, cells)).serve(work)

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
