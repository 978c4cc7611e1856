"""A stream of the platform's log as a source: all partitions, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from ...model.errors import ConfigError
from ...model.replay import tailer_of
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.log.log import Log, Records
from ...stores.log.readers import LogReaders
from ..registry import Environment
from .wait_or_closed import wait_or_closed


class LogOptions(BaseModel):
    """Options of a log source. `stream` names the stream, which may be created later."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str = Field(min_length=1, max_length=400)


#: Positions so near to each other are read again together: a log reads whole batches anyway.
NEAR = 256


class LogSource:
    """Implements `sdk.source.StreamSource` over `stores.log.log.Log`. Partitions are named by their number. `note`
    makes the tailer known to the log, so that nothing goes which it has not settled."""

    capabilities = Capabilities(delays=False, timed=True, replays=True)

    def __init__(self, log: Log, stream: str, note: Callable[[], Awaitable[None]] | None = None) -> None:
        self._log = log
        self._note = note
        self._stream = stream
        self._next: dict[int, int] = {}  # each partition's next position
        self._lost: dict[int, tuple[int, int]] = {}  # ranges that retention took, not yet handed out
        self._turn = 0
        self._closed = asyncio.Event()
        self._closed.set()

    #: Whether records missing below the start were lost: taken by retention, not by this source's own trimming.
    keeps = True

    async def open(self, positions: Mapping[str, int]) -> None:
        if not self._closed.is_set():
            return
        if self._note is not None:
            await self._note()
        self._closed.clear()
        self._next = {int(name): position for name, position in positions.items()}
        self._lost.clear()
        await self._discover()
        for number in self._next.keys() - (await self._log.bounds(self._stream)).keys():
            self._refuse_another_log(number, 0)

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if self._closed.is_set():
            return []
        batches = await self._sweep(limit, max_bytes)
        if not batches and timeout > 0 and await self._wait(timeout):
            await self._discover()
            batches = await self._sweep(limit, max_bytes)
        return batches

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        batch = StreamBatch(partition, [], [], [], [], [])
        wanted = sorted(positions)
        start = 0
        while start < len(wanted):
            stop = start + 1
            while stop < len(wanted) and wanted[stop] - wanted[stop - 1] < NEAR:
                stop += 1  # in the same batch or the next: one read
            few = set(wanted[start:stop])
            position, last = wanted[start], wanted[stop - 1]
            while position <= last:
                records = await self._log.read(self._stream, int(partition), position, last + 1 - position, 1 << 24)
                if not records.positions or records.positions[0] > last:
                    break
                _append(batch, records, [i for i, at in enumerate(records.positions) if at in few])
                position = records.positions[-1] + 1
            start = stop
        missing = sorted(set(wanted).difference(batch.positions))
        if missing:
            bounds = (await self._log.bounds(self._stream)).get(int(partition))
            start = bounds.start if bounds is not None and self.keeps else 0
            batch.lost = [(position, position) for position in missing if position < start]
            batch.absent = [position for position in missing if position >= start]
        return batch

    async def ends(self) -> dict[str, int]:
        return {str(number): bounds.end for number, bounds in (await self._log.bounds(self._stream)).items()}

    async def close(self) -> None:
        self._closed.set()

    async def _discover(self) -> None:
        """Takes in new partitions, from their start; a position that was trimmed away moves to the start."""
        for number, bounds in (await self._log.bounds(self._stream)).items():
            if self._next.setdefault(number, bounds.start) < bounds.start:
                self._passed_over(number, bounds.start)
            self._refuse_another_log(number, bounds.end)

    def _refuse_another_log(self, number: int, end: int) -> None:
        """Raises ConfigError where the log ends before what was read of it: it was begun anew, or lost its end. What is
        appended next would get positions that the checkpoint has passed, and never run."""
        position = self._next[number]
        if self.keeps and position > end:
            self._closed.set()
            raise ConfigError(
                f"the stream {self._stream!r}, partition {number}, ends at position {end}, and was read up to "
                f"{position}: this log is another one (its file was begun anew, or put back). Put the former one back; "
                "or, to read this one from its start, give the tailer another `name`"
            )

    def _passed_over(self, number: int, start: int) -> None:
        """Notes that the records below `start` were gone before they were read."""
        first = self._lost[number][0] if number in self._lost else self._next[number]
        self._lost[number] = (first, start - 1)
        self._next[number] = start

    async def _sweep(self, limit: int, max_bytes: int) -> list[StreamBatch]:
        """Reads the records that are there now, beginning with another partition each time."""
        batches: list[StreamBatch] = []
        numbers = sorted(self._next)
        if not numbers:
            return batches
        self._turn = (self._turn + 1) % len(numbers)
        for number in numbers[self._turn :] + numbers[: self._turn]:
            if limit <= 0 or max_bytes <= 0:
                break
            records = await self._log.read(self._stream, number, self._next[number], limit, max_bytes)
            if records.positions and records.positions[0] > self._next[number]:
                self._passed_over(number, records.positions[0])
            lost = [self._lost.pop(number)] if number in self._lost and self.keeps else []
            if not records.positions:
                if lost:
                    batches.append(StreamBatch(str(number), [], [], [], [], [], lost=lost))
                continue
            self._next[number] = records.positions[-1] + 1
            limit -= len(records.positions)
            max_bytes -= sum(map(len, records.payloads))
            batches.append(
                StreamBatch(
                    str(number),
                    records.positions,
                    records.times,
                    records.keys,
                    records.headers,
                    records.payloads,
                    lost=lost,
                )
            )
        return batches

    async def _wait(self, timeout: float) -> bool:
        """Waits for a record or for `close`; returns whether there may be records to read."""
        await wait_or_closed(self._log.wait(self._stream, dict(self._next), timeout), self._closed)
        return not self._closed.is_set()


def _append(batch: StreamBatch, records: Records, indexes: Sequence[int]) -> None:
    for index in indexes:
        batch.positions.append(records.positions[index])
        batch.times.append(records.times[index])
        batch.keys.append(records.keys[index])
        batch.headers.append(records.headers[index])
        batch.payloads.append(records.payloads[index])


def build(options: LogOptions, environment: Environment) -> LogSource:
    """The source over one stream of this process's log. A replay keeps nothing there."""
    tailer = environment.tailer
    known = partial(LogReaders(environment.checkpoints).note, tailer, options.stream)
    return LogSource(environment.log, options.stream, known if tailer and not tailer_of(tailer) else None)


KIND = SourceKind(
    "log",
    "stream",
    LogOptions,
    build,
    LogSource.capabilities,
    description="records appended to the platform's log",
    retention=True,
)
