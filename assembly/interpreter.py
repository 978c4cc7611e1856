"""The interpreter of a long-lived process, set up for throughput of batches, not for scripts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: A thread that comes back from SQLite waits at most so long for the interpreter lock, seconds (Python's 5 ms would be
#: added to every statement while the event loop is busy).
SWITCH_INTERVAL = 0.0005
#: Young objects before a collection: a flight makes thousands of tuples that live for milliseconds.
YOUNG_OBJECTS = 50_000


@contextmanager
def loading() -> Iterator[None]:
    """Keeps the garbage collector off during the imports of a process. Objects that modules make live as long as the
    process, so they are not looked through for garbage, now or later: that was a quarter of a node's start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settle_in() -> None:
    """Tunes the interpreter, once, when the process has started: objects that exist now live as long as the process."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 100)
