"""Ends this process as another one did, whose exit status whoever waits for this one wants to see.

The guard imports this without the rest of the platform.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def end_as(status: int) -> NoReturn:
    """`status` is what `wait` said of it. No core is written of this process."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # the first process of a container is not ended by its own signals
    os._exit(os.waitstatus_to_exitcode(status))
