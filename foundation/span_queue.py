"""A bounded queue of spans, and a thread that exports them in batches.

Adding a span costs an append. The collector may be away, slow or refuse: then the queue fills, further spans are
dropped and counted; no work waits for it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

_LOG = logging.getLogger("tailrace.telemetry")

#: Seconds that a process waits for its exporter to be ready.
OPEN_WITHIN = 5.0

#: Makes the function that exports a batch; called in the thread, when there is something to export for the first time.
Open = Callable[[], Callable[[Sequence[Any]], bool]]


class SpanQueue:
    """Spans that wait for `open`'s exporter, `most` at once; at least every `every` seconds, or when there are `batch`
    of them, some are exported; an export takes as long as the making of a hundred spans, so there are few.
    `ratio`: see foundation/tracing.py.

    Invariant: each span that was added waits, is being exported, was exported, or is counted in `dropped`.
    """

    def __init__(self, open: Open, *, ratio: float, most: int = 8192, batch: int = 2048, every: float = 5.0) -> None:
        self.ratio = ratio
        self.dropped = {"full": 0, "refused": 0}
        self.exported = 0
        self._open = open
        self._most = most
        self._batch = min(batch, max(1, most // 2))
        self._every = every
        self._waiting: deque[Any] = deque()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Sets the state for this process: a fork has the queue of its parent, and no thread."""
        self._process = os.getpid()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._opened = threading.Event()
        self._closing = False
        self._failing = False

    def add(self, spans: Sequence[Any]) -> None:
        """Adds spans, from any thread. Spans that do not fit are dropped."""
        if self._process != os.getpid():
            self._waiting.clear()
            self._begin_anew()
        room = self._most - len(self._waiting)
        if len(spans) > room:
            self.dropped["full"] += len(spans) - max(0, room)
            spans = spans[: max(0, room)]
        self._waiting.extend(spans)
        if self._thread is None and spans:
            self._start()
        if len(self._waiting) >= self._batch:
            self._wake.set()

    def start(self) -> None:
        """Makes the exporter ready before there is anything to export: its imports take a fifth of a second of a
        processor, which work should not wait for."""
        if self._thread is None:
            self._start()
            self._opened.wait(OPEN_WITHIN)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="tailrace-spans", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:  # the system has no thread to give: the next one who adds tries again
            self._thread = None

    def close(self, within: float) -> None:
        """Exports waiting spans for at most so many seconds; the rest is dropped."""
        thread = self._thread
        if thread is None or self._process != os.getpid():
            return
        self._closing = True
        self._wake.set()
        thread.join(within)
        self.dropped["full"] += len(self._waiting)
        self._waiting.clear()

    def _run(self) -> None:
        try:
            export = self._open()
        except Exception as error:
            _LOG.error("traces cannot be exported: %s", error)
            export = _nowhere
        self._opened.set()
        while True:
            self._wake.wait(self._every)
            self._wake.clear()
            while self._waiting:
                self._export(export)
            if self._closing:
                return

    def _export(self, export: Callable[[Sequence[Any]], bool]) -> None:
        waiting = self._waiting
        some = [waiting.popleft() for _ in range(min(self._batch, len(waiting)))]
        try:
            well = export(some)
        except Exception as error:  # of a library, of which nothing may depend
            well = False
            _LOG.debug("an export failed: %r", error)
        if well:
            self.exported += len(some)
        else:
            self.dropped["refused"] += len(some)
        if well is self._failing:  # it changed
            self._failing = not well
            if well:
                _LOG.info("traces are exported again; %d spans were dropped so far", sum(self.dropped.values()))
            else:
                _LOG.warning("traces cannot be exported: their endpoint is away, slow or refuses; spans are dropped")


def _nowhere(spans: Sequence[Any]) -> bool:
    return False
