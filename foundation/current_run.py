"""The current run: a client that is used inside a function can learn of that function's run here.

A run that waits for other work (`result()` in a function) says so to its executor, which gives its place to another
run meanwhile. The executor sets `RUN` where it calls a function; tasks that the function starts inherit it, and threads
that `asyncio.to_thread` starts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

from ..model.trace_context import attempt_span, context_in


class Wait(Protocol):
    """One wait of a run. `limit` is how many seconds it may take when nobody said; `stops` takes the call that ends it
    when the run is told to end."""

    limit: float

    def stops(self, call: Callable[[], object]) -> None: ...

    def over(self) -> None: ...


class Run(Protocol):
    """A run, as its executor offers it to clients."""

    def wait(self, *, blocking: bool) -> Wait | None:
        """Notes that the run waits from now on; `blocking`: so does its thread. None: that run is over. Raises
        InvalidRequest for a run that cannot wait, Throttled where too many do."""


RUN: ContextVar[Run | None] = ContextVar("tailrace_run", default=None)

#: A run's function, the id of its item, the attempt, and the item's headers.
Identity = tuple[str, str, int, Sequence[tuple[str, str]]]
#: The item that is run, for log lines: also in tasks that the function starts.
ITEM: ContextVar[Any] = ContextVar("tailrace_item", default=None)
_describe: Callable[[Any], Identity] | None = None


def describe_by(describe: Callable[[Any], Identity]) -> None:
    """Sets the function that reads an executor's `ITEM`; it is only called when something is logged."""
    global _describe  # noqa: PLW0603 - of a process there is one, as of its logs
    _describe = describe


def facts() -> dict[str, str | int]:
    """Facts about the current run for log lines; none outside of functions."""
    item = ITEM.get()
    if item is None or _describe is None:
        return {}
    function, id, attempt, headers = _describe(item)
    found: dict[str, str | int] = {"tailrace_function": function, "tailrace_id": id, "tailrace_attempt": attempt}
    context = context_in(headers)
    if context is not None:
        found["trace_id"] = f"{context.trace_id:032x}"
        found["span_id"] = f"{attempt_span(context, id, attempt) if context.sampled else context.span_id:016x}"
    with suppress(Exception):  # of the API, or of somebody's own implementation of it
        if (api := sys.modules.get("opentelemetry.trace")) is not None:
            current = api.get_current_span().get_span_context()
            if current.is_valid and current.trace_flags.sampled:
                found |= {"trace_id": f"{current.trace_id:032x}", "span_id": f"{current.span_id:016x}"}
    return found


@contextmanager
def waiting(*, blocking: bool) -> Iterator[Wait | None]:
    """Marks the current run as waiting for other work inside the block; yields None outside of functions."""
    run = RUN.get()
    wait = None if run is None else run.wait(blocking=blocking)
    try:
        yield wait
    finally:
        if wait is not None:
            wait.over()
