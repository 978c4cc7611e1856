"""The bound on the memory that an executor's functions may allocate. The kernel keeps it.

The bound is RLIMIT_DATA: since Linux 4.7 it counts every private writable mapping, which is the heap, anonymous memory
and the stacks of threads (8 MiB each, touched or not). RLIMIT_AS would count address space: files that are mapped, and
what allocators, threads and runtimes of other languages reserve and never touch, tens of GiB for some. RLIMIT_RSS does
nothing. RLIMIT_DATA does not count shared mappings and files in memory. A child process has the same bound, for
itself.
"""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any


def bound(room: int) -> None:
    """Bounds this process, for good, to `room` bytes more than it has now. Where the kernel does not tell how much a
    process has (not Linux), nothing is bound."""
    now = allocated()
    if now is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = now + room if hard == resource.RLIM_INFINITY else min(now + room, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def allocated() -> int | None:
    """Bytes that count against RLIMIT_DATA now; None: the kernel does not say."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return None


def end_when_exhausted(loop: asyncio.AbstractEventLoop, threads: Collection[str], end: Callable[[], Any]) -> None:
    """Ends the process when the executor's own code, rather than a function, is refused memory: a callback of the loop,
    its transport, or one of these threads. An outcome might be lost with it, and its item would never end; so all that
    runs are suspects."""

    def failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), MemoryError) and ("handle" in context or "transport" in context):
            end()
        loop.default_exception_handler(context)

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        if issubclass(failure.exc_type, MemoryError) and failure.thread and failure.thread.name in threads:
            end()
        threading.__excepthook__(failure)

    loop.set_exception_handler(failed)
    threading.excepthook = thread_failed
