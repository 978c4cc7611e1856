"""A stream of the platform's log as a source: all partitions, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...foundation.config import Start
from ...model.errors import InvalidRequest
from ...model.life import Life, OnRecreated, named
from ...model.replay import tailer_of
from ...model.units import start_of
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.checkpoints.lives import Lives
from ...stores.log.log import Log, Records
from ...stores.log.readers import LogReaders
from ..registry import Environment
from ..seek.first_positions import first_from
from .wait_or_closed import wait_or_closed


class LogOptions(BaseModel):
    """Options of a log source.

    stream        the name of the stream, which may be created later
    start         where the first start begins: earliest, latest, how long before it (2h), or a time
    on_recreated  a log that is another one than the one that was read (its file was begun anew), or that lost records
                  which were read: stop: the tailer stops and says so; from_start: what is there now is read
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str = Field(min_length=1, max_length=400)
    start: Start = "earliest"
    on_recreated: OnRecreated = "stop"


#: Positions so near to each other are read again together: a log reads whole batches anyway.
NEAR = 256


class LogSource:
    """Implements `sdk.source.StreamSource` over `stores.log.log.Log`. Partitions are named by their number, and in a
    further life of the log by that, too. `note` makes the tailer known to the log, so that nothing goes which it has
    not settled; `lives` tells logs of one name apart, and notes where the first start began (`start`)."""

    capabilities = Capabilities(delays=False, timed=True, replays=True)

    def __init__(
        self,
        log: Log,
        stream: str,
        note: Callable[[], Awaitable[None]] | None = None,
        lives: Lives | None = None,
        start: str = "earliest",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._log = log
        self._start, self._clock = start, clock
        self._lives = lives
        self._life = Life()
        self._through: dict[int, int] = {}  # partitions that begin behind what a former life has had
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
        if self._lives is not None:
            await self._meet(self._lives, positions)
        self._closed.clear()
        self._next = self._of_this_life(positions)
        self._lost.clear()
        self._through.clear()
        await self._discover()

    def _of_this_life(self, positions: Mapping[str, int]) -> dict[int, int]:
        return {int(plain): position for name, position in positions.items() if (plain := self._life.plain(name))}

    def _name(self, number: int) -> str:
        return named(str(number), self._life.name)

    async def _meet(self, lives: Lives, positions: Mapping[str, int]) -> None:
        """Finds which life of the log this is. Raises PositionsGone for another one than the one that was read, and for
        one that ends before what was read of it, where the tailer is to stop then: what is appended there gets
        positions that the checkpoint has passed, and would never run."""
        await lives.load()
        try:
            now = Life(await self._log.life(self._stream))
        except InvalidRequest:  # a store server of the version before knows no such call
            now = Life()
        if self._start != "earliest" and not positions and not lives.knows(self._stream):
            now = now._replace(starts=await self._first_start())
        why = "its log was begun anew, or another one is in its place"
        self._life = await lives.meet(self._stream, now, f"the stream {self._stream!r}", why)
        bounds = await self._log.bounds(self._stream)
        ends = {number: bounds[number].end if number in bounds else 0 for number in self._of_this_life(positions)}
        for number, position in self._of_this_life(positions).items():
            if position > ends[number]:
                self._life = await lives.another(
                    self._stream,
                    now._replace(starts={each: min(end, positions[self._name(each)]) for each, end in ends.items()}),
                    f"the stream {self._stream!r}, partition {number}, ends at position {ends[number]}, and was read "
                    f"up to {position}: its log lost its end, or was put back",
                    '"on_recreated: from_start" reads all that comes from there on',
                )
                break

    async def _first_start(self) -> dict[int, int]:
        """The positions at which partitions begin that are there at the first start; all others begin at theirs."""
        bounds = await self._log.bounds(self._stream)
        if self._start == "latest":
            return {number: each.end for number, each in bounds.items()}
        time = start_of(self._start, self._clock.wall())
        return {n: await first_from(self, str(n), each.start, each.end, time) for n, each in bounds.items()}

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
        number = self._life.plain(partition)
        if not number:  # of a log that is there no more
            batch.lost = [(position, position) for position in wanted]
            return batch
        while start < len(wanted):
            stop = start + 1
            while stop < len(wanted) and wanted[stop] - wanted[stop - 1] < NEAR:
                stop += 1  # in the same batch or the next: one read
            few = set(wanted[start:stop])
            position, last = wanted[start], wanted[stop - 1]
            while position <= last:
                records = await self._log.read(self._stream, int(number), position, last + 1 - position, 1 << 24)
                if not records.positions or records.positions[0] > last:
                    break
                _append(batch, records, [i for i, at in enumerate(records.positions) if at in few])
                position = records.positions[-1] + 1
            start = stop
        missing = sorted(set(wanted).difference(batch.positions))
        if missing:
            bounds = (await self._log.bounds(self._stream)).get(int(number))
            start = bounds.start if bounds is not None and self.keeps else 0
            batch.lost = [(position, position) for position in missing if position < start]
            batch.absent = [position for position in missing if position >= start]
        return batch

    async def ends(self) -> dict[str, int]:
        if self._lives is not None and self._closed.is_set():  # not open: nobody looked which life this is
            await self._lives.load()
            self._life = self._lives.life(self._stream)
        return {self._name(number): each.end for number, each in (await self._log.bounds(self._stream)).items()}

    async def close(self) -> None:
        self._closed.set()

    async def _discover(self) -> None:
        """Takes in new partitions, from their start; a position that was trimmed away moves to the start."""
        for number, bounds in (await self._log.bounds(self._stream)).items():
            if number not in self._next and (first := self._life.starts.get(number, 0)) > bounds.start:
                self._next[number] = self._through[number] = first
            elif self._next.setdefault(number, bounds.start) < bounds.start:
                self._passed_over(number, bounds.start)

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
            through = self._through.pop(number, 0)
            if lost or through:
                batches.append(StreamBatch(self._name(number), [], [], [], [], [], lost=lost, through=through))
            if not records.positions:
                continue
            self._next[number] = records.positions[-1] + 1
            limit -= len(records.positions)
            max_bytes -= sum(map(len, records.payloads))
            batches.append(
                StreamBatch(
                    self._name(number),
                    records.positions,
                    records.times,
                    records.keys,
                    records.headers,
                    records.payloads,
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
    tailer, checkpoints = environment.tailer, environment.checkpoints
    if not tailer or tailer_of(tailer):
        return LogSource(environment.log, options.stream)
    known = partial(LogReaders(checkpoints).note, tailer, options.stream)
    lives = Lives(checkpoints, tailer, options.on_recreated)
    return LogSource(environment.log, options.stream, known, lives, options.start, environment.clock)


KIND = SourceKind(
    "log",
    "stream",
    LogOptions,
    build,
    LogSource.capabilities,
    description="records appended to the platform's log",
    retention=True,
)
