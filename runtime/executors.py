"""A supervisor's hold on one executor process: starting it, talking to it, reaping it.

Only a process that was reaped here is ever reported dead (L8).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..sdk.model.workload import Ended, Kind
from .board import Board
from .frames import Done, Dying, Failed, Frames, Notes, Quit, Ready, Setup, Timer, encode, ended_of
from .rules.suspicion import Death

#: Kinds named at once to one executor; beyond it numbering starts again.
KIND_TABLE = 65_536


def peak_memory(used: resource.struct_rusage) -> int:
    """Bytes: Linux counts in KiB, macOS in bytes."""
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Pipe(asyncio.Protocol):
    """One of the two sockets to an executor."""

    def __init__(self, kind: Any, accept: Callable[[Any], None]) -> None:
        self._frames = Frames(kind)
        self._accept = accept

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            self._accept(frame)


class _Writer(asyncio.Protocol):
    """The writing side, on a descriptor of its own: when a write fails because the process has died, the reading side
    must stay open until its last words were read. It is paused: what there is to read is not for it."""


def _same(pipe: _Pipe) -> _Pipe:
    return pipe


class ExecutorProcess:
    """One process. `live` are the keys in it; `covered` is the number of the last assignment sent.

    on_frame  Ready, Failed, Done or Notes from it
    on_death  it was reaped: everything it had said was handed to on_frame before
    """

    def __init__(
        self,
        setup: Setup,
        *,
        on_frame: Callable[[ExecutorProcess, Any], None],
        on_death: Callable[[ExecutorProcess, Death], None],
    ) -> None:
        self.setup = setup
        self.live: set[int] = set()
        self.notes: dict[int, str] = {}
        self.ready = False
        self.retiring = False  # gets nothing more; ends when it is empty
        self.runs = 0
        self.covered = 0
        self.timer = 0.0  # the last deadline sent to its kernel timer
        self.why = ""  # set before it is ended on purpose
        self.culprits: dict[int, Ended] = {}
        self.kinds: dict[Kind, int] = {}
        self.started = 0.0  # loop time
        self.given = 0.0  # loop time when its only item was sent; 0: it runs several at once
        self.was_running: set[int] = set()  # what ran in it when it died
        self.dead = asyncio.Event()
        self.board = Board.create(setup.slots + setup.threads)
        self._on_frame = on_frame
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._transports: list[Any] = []  # reading: work, control
        self._writers: list[Any] = []  # writing: work, control
        self._sockets: list[socket.socket] = []
        self._pipes: list[_Pipe] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._floor = 0

    @property
    def pid(self) -> int:
        """Its process id; 0 before it was started."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Starts the process; it is ready when it said so. It writes to this process's standard error."""
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        fds = [end.fileno() for end in theirs]
        cells = self.setup.slots + self.setup.threads
        self._process = subprocess.Popen(  # noqa: ASYNC220 - a few ms, rarely; what waits for it is a thread
            [sys.executable, "-m", "tailrace.runtime.executor_main", *map(str, [*fds, self.board.fd, cells])],
            pass_fds=[*fds, self.board.fd],
            stdin=subprocess.DEVNULL,
            stdout=2,
            start_new_session=True,
        )
        for end in theirs:
            end.close()
        self.started = self._loop.time()
        self._floor = peak_memory(resource.getrusage(resource.RUSAGE_SELF))
        threading.Thread(target=self._reap, args=(self._process,), name="tailrace-reap", daemon=True).start()
        self._sockets = list(ours)
        for end, kind in zip(ours, (Ready | Failed | Done | Notes, Dying), strict=True):
            end.setblocking(False)
            pipe = _Pipe(kind, self._accept)
            transport, _ = await self._loop.create_unix_connection(partial(_same, pipe), sock=end)
            self._pipes.append(pipe)
            self._transports.append(transport)
            writer, _ = await self._loop.create_unix_connection(_Writer, sock=end.dup())
            writer.pause_reading()  # nothing was said yet: the process is set up below
            self._writers.append(writer)
        self.send(self.setup)

    def send(self, frame: Any) -> None:
        """A frame on the work socket."""
        if self._writers:
            self._writers[0].write(encode(frame))

    def set_timer(self, deadline: float) -> None:
        """Tells its kernel timer the earliest deadline of all that was sent (0: nothing is left)."""
        self.timer = deadline
        if len(self._writers) > 1:
            self._writers[1].write(encode(Timer(self.covered, deadline)))

    def quit(self) -> None:
        """Asks it to end; nothing is in it."""
        self.retiring = True
        self.why = self.why or "it was replaced"
        self.send(Quit())

    def kill(self, why: str) -> None:
        """Ends it now, with everything it started."""
        self.why = self.why or why
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill_unexplained(self) -> None:
        """Ends it now because something in it hangs and nobody can tell what: all that runs in it are suspects."""
        self.kill("")

    def _accept(self, frame: Any) -> None:
        if isinstance(frame, Dying):
            self.why = self.why or frame.why
            self._on_frame(self, Done(frame.succeeded, frame.ended))
            if frame.culprit is not None:
                self.culprits[frame.culprit[0]] = ended_of(frame.culprit)
        else:
            self._on_frame(self, frame)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        try:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode, peak = os.waitstatus_to_exitcode(status), peak_memory(used)
        except ChildProcessError:  # it has ended, but somebody told the kernel to keep no record of such
            process.returncode, peak = 0, 0
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to tell
            self._loop.call_soon_threadsafe(self._reaped, process.returncode, peak, time.monotonic())

    def _reaped(self, code: int, peak: int, when: float) -> None:
        for end, pipe, transport in zip(self._sockets, self._pipes, self._transports, strict=False):
            transport.pause_reading()
            with contextlib.suppress(OSError):  # would block: that was all
                while data := end.recv(1 << 20):
                    pipe.data_received(data)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it started must not outlive it
        self.was_running = self.board.running()
        key, note = self.board.last_note()
        if key in self.live:
            self.notes[key] = note
        self.close()
        self.ready = False
        death = Death(
            code,
            self.why,
            self.culprits or None,
            alone=self.setup.slots + self.setup.threads <= 2,
            ran=when - self.given if self.given and self.live else 0.0,
            peak=peak,
            floor=self._floor,
            bound=self.setup.memory,
        )
        self._on_death(self, death)
        self.dead.set()

    def close(self) -> None:
        """Closes this side's descriptors."""
        for transport in [*self._transports, *self._writers]:
            transport.abort()
        for end in self._sockets[len(self._transports) :]:
            end.close()
        self._transports = []
        self._writers = []
        self._sockets = []
        self.board.close()
