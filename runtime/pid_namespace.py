"""An executor in a PID namespace of its own: processes that it starts are in there too, and the kernel ends them all
with the namespace's first process, even those that tried to hide. Linux only.

Two processes of a bare interpreter stand around it. The *launcher* is the supervisor's child, outside: it makes the
namespace, waits until nothing is left of it, and ends as the executor did, so its parent sees the executor's end. The
*init* is the first process inside, and so the parent of orphans there: it ends when the executor does. It is not the
executor itself, since no signal from inside ends a namespace's first process, nor does its own kernel timer.
When the supervisor ends, the kernel ends the launcher, and then the init (a signal at the parent's death).

    python -c CODE SUPERVISOR COMMAND …      a process id; the command that starts the executor

The command gets one argument more: the launcher's process id, by which the worker knows the executor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys

from .end_as import end_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

#: The signal by which the supervisor asks the launcher, and the launcher the init, to end the executor. After a SIGKILL
#: to either of them nobody waits for the executor's end, and so nobody learns how much memory it had taken.
END = signal.SIGUSR1
#: Exit codes: this system gives no namespace; the executor's program cannot be started.
REFUSED, NO_PROGRAM = 72, 127
#: Names in lists of processes.
LAUNCHER, INIT = b"ns-launcher", b"ns-init"

_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x0002_0000, 0x1000_0000, 0x2000_0000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_SLAVE = 2, 4, 8, 1 << 14, 1 << 19
_ALL = signal.valid_signals()


def main() -> NoReturn:
    """Runs the launcher."""
    supervisor, *program = [*sys.argv[1:], str(os.getpid())]
    # A service manager that ends the worker tells everybody: the supervisor drains, nobody else does anything.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody would be told how the executor ended
    _call_it(LAUNCHER)
    reading, writing = os.pipe()
    _or_refuse("a namespace", _enter)
    _ends_with_parent()
    if os.getppid() != int(supervisor):
        os._exit(1)
    init = os.fork()
    if not init:
        os.close(reading)
        _init(program, writing, mask)
    _keep_only(reading)
    end_as(_end_of(init, reading))


def _end_of(init: int, reading: int) -> int:
    """Exit status of the executor, as the init reported it; of the init, if that was killed and reported nothing. No
    process is left inside then."""
    while True:
        if signal.sigwait({signal.SIGCHLD, END}) == END:
            os.kill(init, END)  # nobody else waits for it: the number is its own
        ended, status = os.waitpid(init, os.WNOHANG)
        if ended:
            said = os.read(reading, 4)
            return int.from_bytes(said, "big") if said else status


def _init(program: list[str], writing: int, mask: set[Any]) -> NoReturn:
    """Runs the first process inside, which reports how the executor ended."""
    _ends_with_parent()
    if _has_no_reader(writing):
        os._exit(1)
    _or_refuse("/proc in a namespace", _mount_own_proc)
    _call_it(INIT)
    executor = os.fork()
    if not executor:
        _become(program, mask)
    _keep_only(writing)
    while True:
        if signal.sigwait({signal.SIGCHLD, END}) == END:
            os.kill(executor, signal.SIGKILL)  # likewise
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended, status = found
            if ended == executor:
                os.write(writing, status.to_bytes(4, "big"))
                os._exit(0)


def _become(program: list[str], mask: set[Any]) -> NoReturn:
    """Becomes the executor: the leader of a session and of a group, as it is without a namespace."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # this interpreter ignores them
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execv(program[0], program)  # noqa: S606 - our own interpreter, no shell
    except OSError as error:
        sys.stderr.write(f"{program[0]} cannot be started: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(NO_PROGRAM)


def _enter() -> None:
    """Makes the namespace: later forks are inside. A user namespace comes with it where it takes one."""
    try:
        _call("unshare", _CLONE_NEWPID | _CLONE_NEWNS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNS)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _mount_own_proc() -> None:
    """Mounts a /proc that shows the namespace alone. Later mounts outside are seen here too, but not the reverse."""
    _call("mount", None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _call("mount", b"proc", b"/proc", b"proc", flags, None)


def _ends_with_parent() -> None:
    """Has the kernel send SIGKILL when the parent ends; a parent that has ended already is to be looked for after this.
    It is set when credentials change no more, since a change takes it back."""
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3)


def _has_no_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return bool(poll.poll(0))


def _keep_only(descriptor: int) -> None:
    """Closes all descriptors but this one and the standard ones: the executor's end of a socket must close with the
    executor alone."""
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 1 << 16)


def _call_it(name: bytes) -> None:
    with contextlib.suppress(OSError), open("/proc/self/comm", "wb") as file:  # noqa: PTH123 - pathlib is not loaded
        file.write(name)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - pathlib is not loaded
        file.write(text)


def _or_refuse(what: str, get: Callable[[], None]) -> None:
    try:
        get()
    except OSError as error:
        sys.stderr.write(f"{what} cannot be made: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(REFUSED)


def _call(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
