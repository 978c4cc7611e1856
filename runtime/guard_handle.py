"""A supervisor's side of its guard: starts it, and acts when it has gone."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

from . import bare_interpreter
from .guard import PASSED_ON
from .guard_memory import WatchPages
from .process_table import end_until_none_is_left
from .rules.ending import Ward

LOG = logging.getLogger("tailrace.runtime")

_PR_SET_CHILD_SUBREAPER = 36
#: Seconds that it gets to start, and to end when nothing is left to guard.
START_WITHIN = 20.0
END_WITHIN = 12.0
#: Seconds before it is started again where it is a child.
AGAIN = 0.5
#: Seconds that ending everything may take when the guard has gone.
PATIENCE = 2.0


class Guarding:
    """A guard and the memory shared with it. `parent`: it is our parent, and has the exit status that we end with;
    else a child of ours.

    Invariant: nothing runs in an executor before the guard said that it watches.
    """

    def __init__(self, watch: WatchPages, line: socket.socket | None = None) -> None:
        self.watch = watch
        self.parent = line is not None
        self._line = line
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._closed = threading.Event()
        self._starting = threading.Lock()
        self._on_gone: Callable[[], None] = lambda: None
        if line is not None:
            self._listen(line)

    @classmethod
    def child(cls) -> Guarding:
        """Makes the guard of a worker inside another program; `start` starts its process."""
        return cls(WatchPages.create())

    async def start(self, on_gone: Callable[[], None]) -> None:
        """Starts a guard that is a child, and returns when the guard watches. `on_gone` is called on the loop when the
        guard has died and another is about to be started: all executors that were there are to be ended. Where the
        guard is our parent, this process ends with it instead."""
        loop = asyncio.get_running_loop()

        def gone() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and everything with it
                loop.call_soon_threadsafe(on_gone)

        self._on_gone = gone
        if not self.parent and self._process is None:
            self._spawn()
        if not await asyncio.to_thread(self._ready.wait, START_WITHIN):
            raise OSError(f"the worker's guard did not start within {START_WITHIN:g} s")

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    _command(self.watch.fd, theirs.fileno(), 0),
                    pass_fds=(self.watch.fd, theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=2,
                    env=bare_interpreter.environment(),
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self._line = ours
        self._listen(ours)

    def _listen(self, line: socket.socket) -> None:
        threading.Thread(target=self._hear, args=(line,), name="tailrace-guard", daemon=True).start()

    def _hear(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while line.recv(16):
                self._ready.set()
        if self._closed.is_set():
            return
        if self.parent:
            LOG.error("this worker's guard has gone: the worker ends, with all that its functions started")
            self.end_all()
            os._exit(1)
        LOG.error("a worker's guard has gone: its executors are ended, and another one is started")
        self._on_gone()
        assert self._process is not None
        self._process.wait()
        line.close()
        self._ready.clear()
        self._spawn_again()

    def _spawn_again(self) -> None:
        """Tries to start the guard until it runs or is not wanted any more."""
        while not self._closed.is_set():
            try:
                with self._starting:
                    if not self._closed.is_set():
                        self._spawn()
                return
            except (OSError, RuntimeError, MemoryError) as error:
                LOG.error("a worker's guard cannot be started again, and will be tried once more: %s", error)
            self._closed.wait(AGAIN)

    def end_all(self) -> None:
        """Ends every executor and all that it started."""
        wards = [Ward(mark, pid) for mark, pid, _ in map(self.watch.who, range(self.watch.count)) if mark]
        for ward in wards:
            if ward.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(ward.pid, signal.SIGKILL)
        for ward in wards:
            end_until_none_is_left(ward, {os.getpid(), os.getppid(), 1}, PATIENCE)

    def close(self) -> None:
        """Lets go of the guard when nothing is left to guard; a child is waited for. Harmless when closed."""
        if self.parent or self._closed.is_set():
            return
        with self._starting:
            self._closed.set()
        if self._line is not None and self._process is not None:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)
            try:
                self._process.wait(END_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._line.close()
        self.watch.close()


def under_guard() -> Guarding | None:
    """Makes this process the guard of the worker, and goes on in a child of it. To be called before there are threads.
    None: it cannot be done here; a guard that is a child will do it."""
    if threading.active_count() > 1:
        return None
    watch = WatchPages.create()
    ours, theirs = socket.socketpair()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody would be told how the supervisor ended
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # the guard passes on signals that arrive now
    _take_orphans()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return Guarding(watch, ours)
    ours.close()
    try:
        for fd in (watch.fd, theirs.fileno()):
            os.set_inheritable(fd, True)
        command = _command(watch.fd, theirs.fileno(), child)
        os.execve(command[0], command, bare_interpreter.environment())  # noqa: S606 - our own interpreter, no shell
    except OSError as error:
        sys.stderr.write(f"the guard of this worker cannot be started: {error}\n")
        sys.stderr.flush()
        os.kill(child, signal.SIGKILL)
    os._exit(1)


def _take_orphans() -> None:
    """Makes this process the parent of orphans below it (Linux, subreaper). An exec keeps that."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _command(memory: int, line: int, child: int) -> list[str]:
    return bare_interpreter.command("guard", str(memory), str(line), str(child))
