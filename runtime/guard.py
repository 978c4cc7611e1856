"""The guard of a worker: a process that ends processes started by executors when nobody else can any more.

It is the parent of the supervisor (a worker that lives inside another program has it as a child instead), and adopts
processes that lose their own parent. Nobody sends it messages: it reads deadlines from the memory that it shares with
the executors, and the kernel tells it of deaths. It runs on a bare interpreter under another name, so that a command
that ends the worker's processes by their name passes it by; of the platform it imports four files.

    python -c CODE MEMORY LINE SUPERVISOR      two descriptors, and the child that it guards; 0: it guards its parent
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time

from .end_as import end_as
from .guard_memory import WatchPages
from .process_table import NO_MARKS, end_each, listed, look_up, now_in_ticks
from .rules.ending import NEVER, Process, Ward, below, due_at, theirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Its name in lists of processes.
NAME = b"lease-guard"
#: Signals that are passed on to the supervisor.
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
#: Seconds between two looks at the deadlines. A death is seen at once; a deadline passes without one only where an
#: executor has lost its kernel timer, by becoming another program.
LOOK = 0.25
#: Seconds between two rounds while something is being ended: the first, and the most.
ROUND, LAST_ROUND = 0.002, 0.1
#: Seconds after which it goes although the kernel still holds processes that it ended.
PATIENCE = 10.0


class Watched:
    """An executor that the guard knows. `handle` is a descriptor of its process (a pidfd); -1: there is none."""

    __slots__ = ("clean", "died", "handle", "ward")

    def __init__(self, mark: str) -> None:
        self.ward = Ward(mark)
        self.handle = -1
        self.died = 0.0
        self.clean = False  # it is dead, and the last round found nothing

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class Guard:
    """The guard's loop. `child` is the supervisor's process id; 0: the supervisor is our parent.

    Invariant: an executor in `watched` still has its page, and is dropped with it.
    """

    def __init__(self, watch: WatchPages, line: int, child: int) -> None:
        self._watch = watch
        self._line = line
        self._child = child
        self._supervisor = child or os.getppid()
        self._spared = {os.getpid(), self._supervisor, 1}
        self._handle = _handle(self._supervisor)
        self._gone = False
        self._status = 0
        self._pause = ROUND
        self._watched: dict[int, Watched] = {}
        # Children from before it became the guard are not to be ended, and their orphans cannot be told from others.
        self._alone = all(process.parent != os.getpid() or process.pid == child for process in listed(NO_MARKS))

    def run(self) -> None:
        """Watches until the supervisor has gone, and all that it and its executors started."""
        waking = _wakes()
        os.write(self._line, b"r")
        late = NEVER
        while True:
            try:
                left = self._round()
            except OSError:  # it may open no more just now
                left = True
            now = time.monotonic()
            if self._gone:
                late = min(late, now + PATIENCE)
                if not left or now > late:
                    return
            self._wait(waking, left, now)

    def leave(self) -> None:
        """Ends as the supervisor did, since that exit status is the worker's."""
        end_as(self._status)

    # -- looking -------------------------------------------------------------------------------------------------------

    def _wait(self, waking: int, left: bool, now: float) -> None:
        poll = select.poll()
        poll.register(waking, select.POLLIN)
        if not self._gone:
            if not self._child:
                poll.register(self._line, select.POLLIN)
            if self._handle >= 0:
                poll.register(self._handle, select.POLLIN)
        for each in self._watched.values():
            if each.handle >= 0 and not each.died:
                poll.register(each.handle, select.POLLIN)
        if left:
            seconds, self._pause = self._pause, min(LAST_ROUND, self._pause * 2)
        else:
            seconds, self._pause = max(0.0, min(LOOK, self._next() - now)), ROUND
        poll.poll(seconds * 1000 + 1)
        while _has(waking):
            os.read(waking, 512)

    def _next(self) -> float:
        """The earliest moment at which an executor is due to be ended, as far as is known."""
        due = NEVER
        for number, each in self._watched.items():
            if not each.clean:
                due = min(due, due_at(self._watch.who(number)[2], each.died, False, NEVER))
        return due

    def _look(self) -> None:
        """Takes note of executors that are there, and of those that have died."""
        present = set()
        for number in range(self._watch.count):
            mark, pid, _ = self._watch.who(number)
            if not mark:
                continue
            present.add(number)
            each = self._watched.get(number)
            if each is None or each.ward.mark != mark:
                if each is not None:
                    each.close()
                each = self._watched[number] = Watched(mark)
            if pid and not each.ward.pid:
                self._meet(each, pid)
            if each.ward.pid and not each.died:
                ticks = now_in_ticks()
                if self._is_dead(each):
                    each.died = time.monotonic()
                    self._watch.tell_died(number, each.died)
                else:
                    each.ward.seen = ticks
        for number in self._watched.keys() - present:
            self._watched.pop(number).close()
        if not self._gone:
            self._gone = self._has_gone()

    def _meet(self, each: Watched, pid: int) -> None:
        """Makes sure that this is the executor: it bears its mark, or is its supervisor's child and dead already."""
        each.handle = _handle(pid)
        found = look_up(pid)
        if found is not None and (found.mark == each.ward.mark or found.parent == self._supervisor):
            each.ward.start = found.start
        each.ward.pid = pid

    @staticmethod
    def _is_dead(each: Watched) -> bool:
        if each.handle >= 0:
            return _has(each.handle)
        found = look_up(each.ward.pid, NO_MARKS)
        if found is not None:
            return found.dead or found.start != each.ward.start
        try:
            os.kill(each.ward.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def _has_gone(self) -> bool:
        """Whether the supervisor has ended. A guard that is its parent does not reap it before all is done; one that is
        its child also goes when the supervisor has let go of the line."""
        if self._child:
            found = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                self._bury()
            return found is not None
        if _has(self._line) and not os.read(self._line, 1):
            return True
        return self._handle >= 0 and _has(self._handle)

    def _bury(self) -> None:
        """Reaps processes that were adopted and have ended."""
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == self._child:
                return
            os.waitpid(found.si_pid, 0)

    # -- ending --------------------------------------------------------------------------------------------------------

    def _round(self) -> bool:
        """Ends processes that are due. True: it found some, so another round must tell whether they are gone."""
        self._look()
        now = time.monotonic()
        due = []
        for number, each in self._watched.items():
            deadline = self._watch.who(number)[2]
            if not (each.clean and not self._gone) and due_at(deadline, each.died, self._gone, now) <= now:
                due.append(each)
        all_below = self._gone and self._child and self._alone
        if not due and not all_below:
            return False
        processes = listed(min((each.ward.start for each in due), default=NO_MARKS))
        found: dict[int, Process] = {}
        for each in due:
            mine = theirs(processes, each.ward, self._spared)
            found.update((process.pid, process) for process in mine)
            each.clean = not mine and bool(each.died)
        if all_below:
            found.update((process.pid, process) for process in below(processes, os.getpid(), self._spared))
        _end_groups([each.ward for each in due if not each.clean and not each.ward.start])
        return bool(end_each(found.values()))

    def ended(self) -> None:
        """Reaps the supervisor and keeps its exit status."""
        if self._child:
            self._status = os.waitpid(self._child, 0)[1]


def _end_groups(wards: list[Ward]) -> None:
    """Ends executors by the number of their group, where the kernel gives no list of processes."""
    for ward in wards:
        if ward.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(ward.pid, signal.SIGKILL)


def _handle(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _has(descriptor: int) -> bool:
    """Whether a descriptor is readable; that of a process is once the process has ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _wakes() -> int:
    """The descriptor that becomes readable after each signal."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _passes_on(child: int) -> Callable[..., None]:
    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)  # it is our child until we asked for its status: the number is its own

    return pass_on


def main() -> None:
    """Runs the guard."""
    memory, line, child = map(int, sys.argv[1:4])
    with contextlib.suppress(OSError), open("/proc/self/comm", "wb") as name:  # noqa: PTH123 - pathlib is not loaded
        name.write(NAME)
    for first, last in (
        (3, min(memory, line)),
        (min(memory, line) + 1, max(memory, line)),
        (max(memory, line) + 1, 1 << 16),
    ):
        os.closerange(first, last)
    with contextlib.suppress(OSError, ValueError):  # it has a handle on each executor
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for number in PASSED_ON:
        signal.signal(number, _passes_on(child) if child else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    guard = Guard(WatchPages(memory), line, child)
    guard.run()
    guard.ended()
    guard.leave()
