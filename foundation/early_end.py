"""The end of a process that is told to end before it is set up for that, where it is the first one (of a container).

The kernel drops a signal to the first process of a PID namespace as long as nobody handles it: a SIGTERM that comes
while modules are loaded, the first second, would be lost, and the container killed when its time to stop is over. So
this is the first import of the command line. What runs takes the signal over (assembly/running.py); before that there
is nothing to end in order.
"""

from __future__ import annotations

import os
import signal


def _end(number: int, frame: object) -> None:
    os._exit(128 + number)


def listen(pid: int) -> None:
    """Has SIGTERM end this process, if it is the first one and nobody handles the signal yet."""
    if pid == 1 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


listen(os.getpid())
