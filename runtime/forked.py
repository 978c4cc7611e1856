"""Forks: a process that a function forks is no second executor. It has none of the sockets, and ends with the code.

A fork that comes back to the caller of the function (it returned, or its `exec` found no program) would go on as the
executor: it would take items from the socket that both have, and run them under no timer. A fork that never comes
back is ended by `runtime/guard.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections import deque
from typing import Any, NoReturn

from .rules import attempt

LOG = logging.getLogger("tailrace.runtime")

#: Whether this process was forked from an executor.
child = False

# Read past whatever a user's class put before it.
_code: Any = SystemExit.__dict__["code"].__get__


def part(loop: asyncio.AbstractEventLoop, *sockets: socket.socket) -> None:
    """Arranges that each later fork of this process knows that it is no executor, and has nothing behind `sockets`."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def in_child() -> None:
        global child  # noqa: PLW0603 - of the process, as a fork is
        child = True
        for each in sockets:
            with contextlib.suppress(OSError):  # closed by the function; nothing is left to take
                os.dup2(nothing, each.fileno(), inheritable=False)
        # If it awaits, the loop would go on with ready callbacks of other items: this comes first.
        loop.call_soon(end, RuntimeError("a function awaited in a process that it had forked"))
        ready = getattr(loop, "_ready", None)
        if isinstance(ready, deque):
            ready.rotate(1)

    os.register_at_fork(after_in_child=in_child)


def end(error: BaseException | None = None) -> NoReturn:
    """Ends this fork as a program ends: 0 when the function returned, what it gave to `sys.exit`, else 1."""
    status = 0 if error is None else 1
    with contextlib.suppress(BaseException):
        if error is not None and issubclass(type(error), SystemExit):
            status = _status(_code(error))
        elif error is not None:
            LOG.error("a process that a function forked ended: %s", attempt.raised(error).reason)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _status(code: object) -> int:
    if code is None:
        return 0
    return int.__and__(code, 0xFF) if isinstance(code, int) else 1
