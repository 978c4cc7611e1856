"""Ends this process with the exit status of another one, so that a waiting parent sees how that one ended.

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
    """Ends this process as another one ended; `status` is what `wait` returned for it. This process writes no core."""
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
