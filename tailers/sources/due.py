"""The source of due retries: one stream of the delay service for each function, whose records are parked items.

Each function is a partition of that name, so that one tailer reads all of them, each with its own window. Records that
the checkpoint has passed are trimmed, so a due stream holds only items that wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pydantic import BaseModel, ConfigDict

from ...model.errors import NotConnected, TailraceError
from ...model.parked import due_function, due_stream
from ...sdk.source import SourceKind, StreamBatch
from ...stores.log.log import Log, MemoryReadableLog, NotifyingLog, trim_each
from ..registry import Environment
from .log import LogSource

#: Seconds after which a wait for more items of one function is begun anew.
LONGEST_WAIT = 60.0
#: The one partition of each due stream.
ONLY = "0"


class DueOptions(BaseModel):
    """No options: the functions are those that have due items."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DueStream(LogSource):
    """One function's due stream. It is trimmed behind the checkpoint, so records that are gone were done."""

    keeps = False

    async def more(self) -> None:
        """Waits until there may be more to read."""
        await self._log.wait(self._stream, dict(self._next), LONGEST_WAIT)

    def tell(self, log: NotifyingLog, call: Callable[[], None]) -> Callable[[], None]:
        """Has `call` called when there may be more to read; returns a function that takes this back."""
        return log.tell(self._stream, self._next, call)

    def at_hand(self, log: MemoryReadableLog, limit: int, max_bytes: int) -> StreamBatch | None:
        """The next records, as far as they are in memory; None: they must be read."""
        if len(self._next) != 1 or self._closed.is_set():
            return None
        ((number, position),) = self._next.items()
        found = log.at_hand(self._stream, number, position, limit, max_bytes)
        if found is None:
            return None
        if found.positions:
            self._next[number] = found.positions[-1] + 1
        return StreamBatch(str(number), found.positions, found.times, found.keys, found.headers, found.payloads)

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if not self._next:
            await self._discover()  # nothing had ever been due when it was opened
        if len(self._next) > 1 or timeout or self._closed.is_set():
            return await super().read(limit, max_bytes, timeout)
        for number, position in [*self._next.items()]:  # one, as ever: hundreds of streams have a few items each
            found = await self._log.read(self._stream, number, position, limit, max_bytes)
            if found.positions:
                self._next[number] = found.positions[-1] + 1
                columns = (found.positions, found.times, found.keys, found.headers, found.payloads)
                return [StreamBatch(str(number), *columns)]
        return []


class DueSource:
    """Implements `sdk.source.StreamSource`. A reader with a window for each function asks `ready`, then `at_hand`, and
    `take` for items that are not in memory; `on_ready`, which its pump sets, is called when `ready` has another one.

    Invariant: each stream of an open source is in `_ready` or has an entry in `_waits`, a function that gives up the
    wait.
    """

    capabilities = LogSource.capabilities

    def __init__(self, log: Log) -> None:
        self.on_ready: Callable[[], None] = lambda: None
        self._log = log
        self._telling = log if isinstance(log, NotifyingLog) else None
        self._at_hand = log if isinstance(log, MemoryReadableLog) else None
        self._open = False
        self._streams: dict[str, DueStream] = {}
        self._ready: dict[str, None] = {}
        self._waits: dict[str, Callable[[], object]] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._failed: dict[str, BaseException] = {}  # errors of waits for more, until a read raises them
        self._some = asyncio.Event()

    async def open(self, positions: Mapping[str, int]) -> None:
        if self._open:
            return
        names = {name for stream in await self._log.streams() if (name := due_function(stream)) is not None}
        streams = {}
        for name in sorted({*positions, *names}):
            streams[name] = DueStream(self._log, due_stream(name))
            await streams[name].open({ONLY: positions[name]} if name in positions else {})
        self._streams = streams
        self._open = True
        for name in streams:
            self._has_more(name)

    async def expect(self, *functions: str) -> None:
        """Expects due items of these functions from now on."""
        for function in functions:
            if not self._open or function in self._streams:
                continue
            stream = DueStream(self._log, due_stream(function))
            await stream.open({})
            if self._open and function not in self._streams:
                self._streams[function] = stream
                self._has_more(function)

    def ready(self) -> list[str]:
        """The functions that may have more to read."""
        return list(self._ready)

    def at_hand(self, function: str, limit: int, max_bytes: int) -> StreamBatch | None:
        """The next due items of one function that are in memory, perhaps none; None: they must be taken."""
        batch = None
        if self._at_hand is not None and function in self._streams:
            batch = self._streams[function].at_hand(self._at_hand, limit, max_bytes)
        if batch is not None:
            batch.partition = function
            self._took(function, len(batch.positions) < limit)
        return batch

    async def take(self, function: str, limit: int, max_bytes: int) -> StreamBatch | None:
        """The next due items of one function; None: there are none now. Raises NotConnected if the wait for them
        failed."""
        if (error := self._failed.pop(function, None)) is not None:
            why = str(error) or type(error).__name__
            raise NotConnected(f"waiting for due items of {function} failed: {why}") from error
        batches = await self._streams[function].read(limit, max_bytes, 0.0)
        self._took(function, sum(len(batch.positions) for batch in batches) < limit)
        if not batches:
            return None
        (batch,) = batches  # a due stream has one partition
        batch.partition = function
        return batch

    def _took(self, function: str, all_of_it: bool) -> None:
        """Notes that items of a function were read; begins to wait for more if that was all."""
        if all_of_it and self._open and function in self._ready:
            del self._ready[function]
            self._waits[function] = self._wait_for(function)

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._open and not self._ready:
                    self._some.clear()
                    await self._some.wait()
        batches: list[StreamBatch] = []
        for name in self.ready():
            if limit > 0 and max_bytes > 0 and (batch := await self.take(name, limit, max_bytes)) is not None:
                batches.append(batch)
                limit -= len(batch.positions)
                max_bytes -= sum(map(len, batch.payloads))
        return batches

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        batch = await self._streams[partition].reread(ONLY, positions)
        batch.partition = partition
        return batch

    async def ends(self) -> dict[str, int]:
        return {name: end for name, stream in [*self._streams.items()] for end in (await stream.ends()).values()}

    async def settled_below(self, partition: str, position: int) -> None:
        """Forgets the records of a function below `position`."""
        await self.settled_below_each({partition: position})

    async def settled_below_each(self, positions: Mapping[str, int]) -> None:
        """Forgets the records of each of these functions below its position."""
        known = {due_stream(name): position for name, position in positions.items() if name in self._streams}
        await trim_each(self._log, known)

    async def close(self) -> None:
        self._open = False
        self._some.set()
        waits, self._waits = self._waits, {}
        for give_up in waits.values():
            give_up()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        for stream in [*self._streams.values()]:
            await stream.close()
        self._ready.clear()
        self._failed.clear()

    def _wait_for(self, function: str) -> Callable[[], object]:
        """Begins to wait for more items of one function; returns a function that gives up the wait."""
        if self._telling is not None:
            return self._streams[function].tell(self._telling, partial(self._has_more, function))
        task = asyncio.create_task(self._more(function), name=f"due-{function}")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return task.cancel

    async def _more(self, function: str) -> None:
        try:
            with contextlib.suppress(TailraceError):  # the next read meets it again
                await self._streams[function].more()
        except (Exception, asyncio.CancelledError) as error:
            if function not in self._waits:  # it was given up
                raise
            self._failed[function] = error
        self._has_more(function)

    def _has_more(self, function: str) -> None:
        self._waits.pop(function, None)
        self._ready[function] = None
        self._some.set()
        self.on_ready()


def build(options: DueOptions, environment: Environment) -> DueSource:
    """The source over the due streams of this process's delay service."""
    return DueSource(environment.due_log)


KIND = SourceKind(
    "due", "stream", DueOptions, build, DueSource.capabilities, description="items of the delay service that are due"
)
