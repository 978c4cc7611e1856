"""A supervisor's hold on one executor process: starting it, talking to it, reaping it.

Only a process that was reaped here is ever reported dead (L8).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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

from msgspec.structs import replace

from ..model.workload import Ended, Kind
from . import bare_interpreter, pid_namespace_command
from .board import Board
from .frames import (
    Done,
    Dying,
    ExecutorSetup,
    Failed,
    Frames,
    Notes,
    Quit,
    Ready,
    RunTimes,
    Timer,
    Waits,
    encode,
    ended_of,
)
from .guard_memory import WatchPages
from .kept_sources import KeptRow
from .pid_namespace import END
from .process_table import VARIABLE, end_until_none_is_left, listed, look_up
from .rules.ending import Ward, theirs
from .rules.silence import Silence, said
from .rules.suspicion import ProcessDeath

LOG = logging.getLogger("tailrace.runtime")

#: Seconds that processes left by a dead executor get to end, before its death is told all the same.
PATIENCE = 5.0
#: Seconds that the launcher of a namespace has to end what is in it.
ITS_LAUNCHERS_TURN = 1.0
#: Kinds named at once to one executor; beyond it numbering starts again.
KIND_TABLE = 65_536


def peak_memory(used: resource.struct_rusage) -> int:
    """The peak of resident memory in bytes: Linux counts in KiB, macOS in bytes."""
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Pipe(asyncio.Protocol):
    """One of the two sockets to an executor. `lost` is called when bytes come that are no frame of an executor: a
    function wrote there, or read what was ours. Later bytes are ignored."""

    def __init__(self, kind: Any, accept: Callable[[Any], None], lost: Callable[[Exception], None]) -> None:
        self._frames = Frames(kind)
        self._accept = accept
        self._lost = lost
        self._deaf = False

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        try:
            for frame in self._frames.feed(data):
                self._accept(frame)
        except Exception as error:
            self._deaf = True
            self._lost(error)


class _Writer(asyncio.Protocol):
    """The writing side, on a descriptor of its own: when a write fails because the process has died, the reading side
    must stay open until its last words were read. Reading is paused here, since the other side reads."""


def _same(pipe: _Pipe) -> _Pipe:
    return pipe


class ExecutorProcess:
    """One process. `live` are the keys in it; `covered` is the number of the last assignment sent. `watch` is the
    memory that its worker's guard reads. `pid_namespace`: it gets one of its own; the process known here is then the
    launcher of that, which ends as the executor does (pid_namespace.py). `pause`: seconds between two looks at it;
    `kept` tells of modules that are not on the disk any more as they were.

    on_frame  Ready, Failed, Done, Notes, Waits or RunTimes from it
    on_death  it was reaped, and all that it started has ended; every frame from it was handed to on_frame before

    Invariant: its number is its own, and its group's, until `_dead` is set, under the lock.
    """

    def __init__(
        self,
        setup: ExecutorSetup,
        *,
        on_frame: Callable[[ExecutorProcess, Any], None],
        on_death: Callable[[ExecutorProcess, ProcessDeath], None],
        watch: WatchPages,
        pid_namespace: bool = False,
        pause: float = 1.25,
        kept: Callable[[], list[KeptRow]] | None = None,
    ) -> None:
        self.setup = setup
        self.live: set[int] = set()
        self.notes: dict[int, str] = {}
        self.ready = False  # it has loaded its functions
        self.retiring = False  # gets nothing more; ends when it is empty
        self.runs = 0
        self.covered = 0
        self.timer = 0.0  # the last deadline sent to its kernel timer
        self.why = ""  # set before it is ended on purpose
        self.culprits: dict[int, Ended] = {}
        self.kinds: dict[Kind, int] = {}
        self.started = 0.0  # loop time
        self.given = 0.0  # loop time when its only item was sent; 0: it runs several at once
        self.was_running: set[int] = set()  # items that had begun when it died, and were not told to have ended
        self.was_waiting: set[int] = set()  # items that waited for other work then
        self.waits: set[int] = set()  # items that wait so now: a part of `live`
        self.dead = asyncio.Event()
        self.board = Board.create(setup.cells)
        self._on_frame = on_frame
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._transports: list[Any] = []  # reading: work, control
        self._writers: list[Any] = []  # writing: work, control
        self._sockets: list[socket.socket] = []
        self._pipes: list[_Pipe] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._floor = 0
        self._watch = watch
        self._pid_namespace = pid_namespace
        self._kept = kept
        self._page = -1
        self._connecting = False  # the sockets are on their way to the loop
        self._death: tuple[int, int, float] | None = None  # it was reaped meanwhile
        self._ward = Ward("")
        self._spared = {os.getpid(), os.getppid(), 1}
        self._lock = threading.Lock()
        self._dead = False
        self._overdue = False
        self._armed = 0.0
        self.silence = Silence(pause, time.monotonic())
        self._what = ""  # what happened to it, in its own last words

    @property
    def pid(self) -> int:
        """The process id; 0 before the start."""
        return self._process.pid if self._process else 0

    async def start(self) -> None:
        """Starts the process, which writes to this process's standard error. It is ready once it says so."""
        ours, theirs = zip(socket.socketpair(), socket.socketpair(), strict=True)
        fds = [end.fileno() for end in theirs]
        cells = self.setup.cells
        try:
            self._page, mark = self._watch.take()
            arguments = [*fds, self.board.fd, cells, self._watch.fd, self._page]
            command = [sys.executable, "-P", "-m", "tailrace.runtime.executor_main", *map(str, arguments)]
            environment = {**os.environ, VARIABLE: mark}
            if self._pid_namespace:
                command = pid_namespace_command.inside(command)
                environment = {**bare_interpreter.environment(), VARIABLE: mark}
            self._process = subprocess.Popen(  # noqa: ASYNC220 - a few ms, rarely; what waits for it is a thread
                command,
                pass_fds=[*fds, self.board.fd, self._watch.fd],
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            for end in ours:
                end.close()
            if self._page >= 0:
                self._watch.free(self._page)
            raise
        finally:
            for end in theirs:
                end.close()
        self._watch.started(self._page, self.pid)
        self._ward = Ward(mark, self.pid)
        with contextlib.suppress(OSError):  # it may open no more just now: then the mark alone tells its processes
            found = look_up(self.pid)
            self._ward.start = 0 if found is None else found.start
        self.started = self._loop.time()
        self._floor = peak_memory(resource.getrusage(resource.RUSAGE_SELF))
        try:
            threading.Thread(target=self._reap, args=(self._process,), name="tailrace-reap", daemon=True).start()
        except BaseException:  # the process has taken the last thread: nobody would reap it
            for end in ours:
                end.close()
            self._unreaped(self._process)
            raise
        self._sockets = list(ours)
        self._connecting = True
        try:
            for end, kind in zip(ours, (Ready | Failed | Done | Notes | Waits | RunTimes, Dying), strict=True):
                await self._connect(end, kind)
        finally:
            self._connecting = False
            if self._death is not None:
                self._reaped(*self._death)
        sources = [] if self._kept is None else await asyncio.to_thread(self._kept)
        self.send(replace(self.setup, sources=sources) if sources else self.setup)

    def _unreaped(self, process: subprocess.Popen[bytes]) -> None:
        """Ends and reaps a process here that has no thread to reap it, and was set up with nothing yet."""
        self._kill_group()
        with self._lock:
            process.wait()
            self._dead = True
        self._watch.free(self._page)
        self._process = None

    async def _connect(self, end: socket.socket, kind: Any) -> None:
        end.setblocking(False)
        copy = end.dup()  # before the loop has it, which closes it when the process has ended
        pipe = _Pipe(kind, self._accept, self._misheard)
        try:
            transport, _ = await self._loop.create_unix_connection(partial(_same, pipe), sock=end)
        except BaseException:
            copy.close()  # the loop never had it
            raise
        self._pipes.append(pipe)
        self._transports.append(transport)
        writer, _ = await self._loop.create_unix_connection(_Writer, sock=copy)
        if not writer.is_closing():
            writer.pause_reading()  # nothing was said yet: the process is set up when all are connected
        self._writers.append(writer)

    def send(self, frame: Any) -> None:
        """Writes a frame to the work socket."""
        self._write(0, frame)

    def set_timer(self, deadline: float) -> None:
        """Tells its kernel timer the earliest deadline of all that was sent (0: nothing is left)."""
        self.timer = deadline
        self._write(1, Timer(self.covered, deadline))

    def _write(self, socket: int, frame: Any) -> None:
        """Writes a frame. A process that has ended and is not reaped yet gets none: its death tells which items were in
        it."""
        if len(self._writers) > socket and not self._writers[socket].is_closing():
            self._writers[socket].write(encode(frame))

    def quit(self) -> None:
        """Asks the process to end; no item is in it."""
        self.retiring = True
        self.why = self.why or "it was replaced"
        self.send(Quit())

    def kill(self, why: str) -> None:
        """Ends it now, with everything it started."""
        self.why = self.why or why
        if self._process is not None:
            self._kill_group()

    def _kill_group(self) -> None:
        self._signal(os.killpg, signal.SIGKILL)

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        with self._lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if not self._dead:
                send(self.pid, number)

    def hears_nothing(self, now: float, longest: float) -> bool:
        """Looks at its pulse. True: it is silent, by its own doing, and its timer is about to ring."""
        silent = self.silence.look(self.board.last_pulse(), now) > longest
        return silent and self.silence.is_to_end(longest, self._watch.armed(self._page), self.timer, now)

    def kill_unexplained(self, what: str = "") -> None:
        """Ends the process now because something in it hangs and nobody can tell which item: all that run in it are
        suspects, and `what` happened to it. In a PID namespace the launcher is asked first, since only it can learn how
        much memory the process had."""
        self._what = self._what or what
        if self._pid_namespace and self.ready:
            self._signal(os.kill, END)
            self._loop.call_later(ITS_LAUNCHERS_TURN, self.kill, "")
        else:
            self.kill("")

    def _misheard(self, error: Exception) -> None:
        LOG.error(
            "executor %d is ended: it sent bytes that are no frame (%r); a function may have written to its socket",
            *(self.pid, error),
        )
        self.kill("")

    def end_what_goes_on(self, deadline: float) -> None:
        """Looks again at `deadline`, when the lease of items that were told to end is over. If a process that was
        started in this executor still runs then, the executor ends with all of it: nobody can tell whose that is."""
        self._loop.call_later(max(0.0, deadline - time.monotonic()), self._look_for_what_goes_on)

    def _look_for_what_goes_on(self) -> None:
        def found(looking: asyncio.Future[bool]) -> None:
            if not looking.cancelled() and looking.result():
                self.kill("a process started in it went on beyond a lease")

        if not self._dead:
            self._loop.run_in_executor(None, self._is_followed).add_done_callback(found)

    def _is_followed(self) -> bool:
        own = pid_namespace_command.PROCESSES if self._pid_namespace else 1
        return len(theirs(listed(self._ward.start), self._ward, self._spared)) > own

    def _accept(self, frame: Any) -> None:
        if isinstance(frame, Dying):
            self.why, self._what = self.why or frame.why, frame.what
            self._on_frame(self, Done(frame.succeeded, frame.ended))
            if frame.culprit is not None:
                self.culprits[frame.culprit[0]] = ended_of(frame.culprit)
        else:
            self._on_frame(self, frame)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        """Waits for the process to end, ends all that it started, and reaps it last: as long as its number is kept, the
        group of that number is certainly its own."""
        with contextlib.suppress(ChildProcessError):  # it has ended, but somebody told the kernel to keep no record
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            self._kill_group()
        when = time.monotonic()
        over = end_until_none_is_left(self._ward, self._spared, PATIENCE)
        if not over:
            LOG.error(
                "executor %d: processes that it started could not be ended within %g s; the guard goes on trying",
                *(process.pid, PATIENCE),
            )
        with self._lock:
            try:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode, peak = os.waitstatus_to_exitcode(status), peak_memory(used)
            except ChildProcessError:
                process.returncode, peak = 0, 0
            self._dead = True
        armed, seen = self._watch.armed(self._page), self._watch.died(self._page)
        self._armed = armed
        if over:
            self._watch.free(self._page)
        self._overdue = bool(armed) and (seen or when) >= armed
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to tell
            self._loop.call_soon_threadsafe(self._reaped, process.returncode, peak, when)

    def _reaped(self, code: int, peak: int, when: float) -> None:
        if self._connecting:  # sockets on their way to the loop must not be closed under it: libuv ends the worker
            self._death = (code, peak, when)
            return
        for end, pipe, transport in zip(self._sockets, self._pipes, self._transports, strict=False):
            transport.pause_reading()
            with contextlib.suppress(OSError):  # would block: that was all
                while data := end.recv(1 << 20):
                    pipe.data_received(data)
        self.was_running, self.was_waiting = self.board.running() & self.live, self.board.waiting() & self.live
        key, note = self.board.last_note()
        if key in self.live:
            self.notes[key] = note
        self._look_whose_doing(when)
        self.close()
        death = ProcessDeath(
            code,
            self.why,
            self.culprits or None,
            self._what,
            alone=self.setup.slots + self.setup.threads <= 2,
            ran=when - self.given if self.given and self.live else 0.0,
            peak=peak,
            floor=self._floor,
            bound=self.setup.memory,
            overdue=self._overdue,
        )
        self._on_death(self, death)
        self.dead.set()

    def _look_whose_doing(self, when: float) -> None:
        """Notes of a process that its timer ended at `when` whether it had not heard in time by its own doing."""
        unexplained = self._overdue and not (self.why or self._what)
        if unexplained and self.silence.is_own_doing(self._armed, self.timer, when):
            self._what = said(when - self.board.last_pulse())

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
