"""Inside: what a client may know of the run that it is used in.

A run that waits for other work (`result()` in a function) says so to its executor, which gives its place to another
run meanwhile. The executor sets `RUN` where it calls a function; tasks that the function starts inherit it, and threads
that `asyncio.to_thread` starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Wait(Protocol):
    """One wait of a run. `limit` is how many seconds it may take when nobody said; `stops` names what ends it when the
    run is told to end."""

    limit: float

    def stops(self, call: Callable[[], object]) -> None: ...

    def over(self) -> None: ...


class Run(Protocol):
    """A run, as its executor has it."""

    def wait(self, *, blocking: bool) -> Wait | None:
        """It waits from now on; `blocking`: so does its thread. None: that run is over. Raises InvalidRequest for one
        that cannot wait, Throttled where too many do."""


RUN: ContextVar[Run | None] = ContextVar("tailrace_run", default=None)


@contextmanager
def waiting(*, blocking: bool) -> Iterator[Wait | None]:
    """Within it the run that this is inside of waits; None outside of functions."""
    run = RUN.get()
    wait = None if run is None else run.wait(blocking=blocking)
    try:
        yield wait
    finally:
        if wait is not None:
            wait.over()
