"""The timer by which the kernel ends this process at an absolute CLOCK_MONOTONIC time, whatever its code does then.

On Linux it is a timer of our own that sends SIGKILL: user code cannot reach it, it rings even while the process is
stopped, and SIGALRM and `setitimer` stay free for the time-outs of functions. Python has no call for it, so ctypes does
it. A fork does not inherit it, and an exec loses it. Elsewhere, or where the kernel refuses one, it is ITIMER_REAL with
SIGALRM at its default action, which user code may take away: each beat of the loop looks at that.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from .deadman import Relative

LOG = logging.getLogger("tailrace.runtime")

_SIGEV_SIGNAL = 0
_TIMER_ABSTIME = 1
_BILLION = 1_000_000_000


class _Value(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("pointer", ctypes.c_void_p))


class _Event(ctypes.Structure):
    """struct sigevent: 64 bytes on 64-bit Linux."""

    _fields_ = (("value", _Value), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_int * 12))


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    """struct itimerspec."""

    _fields_ = (("interval", _Time), ("value", _Time))


class KernelTimer(Protocol):
    """A timer of the kernel, armed by a call with an absolute time (0: never). `look` is called on the main thread once
    a beat; True: a function may have disturbed the timer, so it is to be armed again."""

    def __call__(self, deadline: float) -> None: ...

    def look(self) -> bool: ...


class KillTimer:
    """A POSIX timer with SIGKILL. Raises OSError when the kernel, or a filter of system calls, gives none."""

    def __init__(self) -> None:
        self._settime = _function("timer_settime")
        self._id = ctypes.c_void_p()
        self._setting = _Setting()
        event = _Event(signo=signal.SIGKILL, notify=_SIGEV_SIGNAL)
        _checked(_function("timer_create")(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._id)))

    def __call__(self, deadline: float) -> None:
        value = self._setting.value
        at = max(1, int(deadline * _BILLION)) if deadline else 0  # 0 disarms it
        value.seconds, value.nanoseconds = divmod(at, _BILLION)
        _checked(self._settime(self._id, _TIMER_ABSTIME, ctypes.byref(self._setting), None))

    def look(self) -> bool:
        """False: no function can reach this timer."""
        return False


class AlarmTimer:
    """ITIMER_REAL, whose SIGALRM ends the process at its default action."""

    def __init__(self) -> None:
        self._arm = Relative(lambda delay: signal.setitimer(signal.ITIMER_REAL, delay) and None)
        self.look()

    def __call__(self, deadline: float) -> None:
        self._arm(deadline)

    def look(self) -> bool:
        """Puts SIGALRM back to its default action, unblocked. True always: a function may also have set the timer to
        another time, which cannot be told."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        return True


def kernel_timer(make: Callable[[], KernelTimer] = KillTimer) -> KernelTimer:
    """The strongest timer that this system gives. Called on the main thread."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return AlarmTimer()
    try:
        return make()
    except (OSError, AttributeError) as error:
        LOG.warning(
            "this system gives no timer that ends a process by SIGKILL (%s): SIGALRM and setitimer do it, so functions "
            "must leave both alone",
            error,
        )
        return AlarmTimer()


def _function(name: str) -> Any:
    """A function of libc, or of librt before glibc 2.34. The interpreter lock is kept while it is called: that takes
    less than giving it up. Raises OSError or AttributeError when there is none."""
    try:
        return getattr(ctypes.PyDLL(None, use_errno=True), name)
    except AttributeError:
        return getattr(ctypes.PyDLL("librt.so.1", use_errno=True), name)


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
