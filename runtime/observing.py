"""Observation of runs, their spans and how long they take, in one step before and one after; off where nobody asks."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any

from ..foundation.clock import Clock
from ..model.workload import Ended
from .entry import Item, PreparedKind
from .run_times import Stopwatch
from .tracing import RunTracing, traced


class Observing:
    """The observation of an executor's runs. One of the two may be off."""

    def __init__(self, traces: RunTracing | None, times: Stopwatch | None) -> None:
        self._traces = traces
        self._times = times

    def begin(self, item: Item) -> Any:
        """Begins to observe a run, in the current context. Returns its span; None: its item carries no trace."""
        return None if self._traces is None else self._traces.begin(item)

    def end(self, kind: PreparedKind, ended: Ended | None, seconds: float, span: Any) -> None:
        """Records the end of a run, in the same context, after so many seconds."""
        times = self._times
        if span is None:
            if times is not None:
                if ended is None and kind.ran:
                    kind.ran.append(seconds)
                else:
                    times.ran(kind, ended, seconds)
            return
        if times is not None:
            times.ran(kind, ended, seconds, traced(span))
        if self._traces is not None:
            self._traces.end(span, ended)

    def end_in_thread(
        self, kind: PreparedKind, ended: Ended | None, seconds: float, span: Any, context: Context
    ) -> None:
        """Records the end of a run in a thread; `context` is the run's."""
        if self._times is not None:
            self._times.threaded.append((kind, ended, seconds, traced(span)))
        if span is not None and self._traces is not None:
            context.run(self._traces.end, span, ended)

    def collect(self) -> None:
        """Adds the times that threads measured; on the loop."""
        if self._times is not None:
            self._times.collect()


def observing(
    traces: RunTracing | None, timed: bool, loop: Any, send: Callable[[Any], None], clock: Clock
) -> Observing | None:
    """The observation for a new executor; None: there is nothing to observe."""
    times = Stopwatch(loop, send, clock.wall) if timed else None
    return None if traces is None and times is None else Observing(traces, times)
