"""Parking: an item that failed for now goes to the first rung of its chain, durably, or to its due stream.

`DelayService` is the one object both for tailers of the same process and, through `DelayServer`, for others.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence

import grpc

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..model.errors import InvalidRequest, Overloaded
from ..model.parked import Parked, due_stream
from ..model.retry import DEFAULT_RETRY
from ..model.units import duration_text
from ..stores.log.log import Log, Record, append_to_each
from ..stores.queue.queue import Queue
from ..wire import delay as wire
from ..wire.channel import serve
from ..wire.delay import Depth
from ..wire.health import Health
from .config import DelayConfig
from .depths import FRESH, SELDOM, Depths
from .parcels import packed
from .queue_mover import QUEUE, waiting
from .records import record_of, rung_stream, rung_wait

#: Seconds that the clock of a parking tailer may be ahead of ours before a delay of exactly `max_delay` is refused.
CLOCK_ALLOWANCE = 60.0
#: Seconds that a refused caller is told to wait.
RETRY_AFTER = 1.0
#: An item that was parked more often than that is here already, in its due stream, and leaves that once it is parked
#: again: it is never refused for space, or a full service would wait for what waits for it.
AT_FIRST = 1
#: Seconds that calls which are being answered get when the server is stopped.
GRACE = 0.5

_LOG = logging.getLogger("tailrace.delay")


class DelayService:
    """Parks items in the rungs of `log`; with a `queue`, in that, each with its due time. Items that are due already go
    to their due stream in `log`. Needs no start; the Mover, or the QueueMover, carries the items on."""

    def __init__(self, log: Log, config: DelayConfig, clock: Clock = SYSTEM_CLOCK, queue: Queue | None = None) -> None:
        self._log = log
        self._queue = queue
        self._config = config
        self._clock = clock
        self._ladder = config.ladder()
        self._streams = [rung_stream(wait) for wait in config.rungs]
        self._depths = Depths(log, clock, queue)
        self._parking_items = 0  # being appended: counted so that parks at once cannot pass the bound together
        self._parking_bytes = 0
        usual = float(DEFAULT_RETRY.max)
        if config.max_delay < usual:
            _LOG.warning(
                "max_delay in delay.yaml is %s, and the usual retry policy waits up to %s: an item that is to wait "
                "longer than max_delay becomes a dead letter, however many attempts it has left. Raise max_delay, or "
                "give the functions and tailers a policy whose `max` it allows",
                duration_text(config.max_delay),
                duration_text(usual),
            )

    async def park(self, items: Sequence[Parked]) -> None:
        """Parks items, durably when it returns. Safe to repeat: a repeat may make a copy, never lose one.

        Raises InvalidRequest for a due time beyond `max_delay` (nothing was stored), Overloaded when the service holds
        what it may and some of these are new (nothing was stored), and what the log raises (some may be stored: repeat
        all).
        """
        now = self._clock.wall()
        for item in items:
            self._check(item, now)
        size = sum(len(item.payload) for item in items)
        new = [len(item.payload) for item in items if item.n <= AT_FIRST]
        await self._depths.look(SELDOM if self._has_much_room(len(items), size) else FRESH)
        if new:
            self._admit(len(new), sum(new))
        self._parking_items += len(items)
        self._parking_bytes += size
        try:
            await self._append(self._by_stream(items, self._clock.wall()))
        finally:
            self._parking_items -= len(items)
            self._parking_bytes -= size

    def _check(self, item: Parked, now: float) -> None:
        if not math.isfinite(item.due):
            raise InvalidRequest(f"item {item.id!r}: due {item.due!r} is not a time; expected seconds since 1970")
        if item.due - now > self._config.max_delay + CLOCK_ALLOWANCE:
            raise InvalidRequest(
                f"item {item.id!r} is due in {duration_text(item.due - now)}, but the longest delay is "
                f"{duration_text(self._config.max_delay)}: retry sooner, or raise max_delay in delay.yaml"
            )

    def _has_much_room(self, items: int, size: int) -> bool:
        """Whether at most half of the bounds is used with these items, by the last counts."""
        config, held = self._config, self._depths
        return held.items + items <= config.max_items >> 1 and held.bytes + size <= config.max_bytes >> 1

    def _admit(self, items: int, size: int) -> None:
        config = self._config
        held, held_bytes = self._depths.items + self._parking_items, self._depths.bytes + self._parking_bytes
        if held + items > config.max_items:
            raise Overloaded(
                f"the delay service holds {held} items of at most {config.max_items}: items stay in their sources "
                "until some are done (max_items in delay.yaml)",
                RETRY_AFTER,
            )
        if held_bytes + size > config.max_bytes:
            raise Overloaded(
                f"the delay service holds about {held_bytes} bytes of at most {config.max_bytes}: items stay in their "
                "sources until some are done (max_bytes in delay.yaml)",
                RETRY_AFTER,
            )

    def _by_stream(self, items: Sequence[Parked], now: float) -> dict[str, list[Record]]:
        grouped: dict[str, list[Record]] = {}
        for item in items:
            latest = self._ladder.latest(item.due, now)
            rung = self._ladder.next_rung(item.due, latest, now)
            if rung is None:
                stream = due_stream(item.kind.function)
            else:
                stream = QUEUE if self._queue is not None else self._streams[rung]
            grouped.setdefault(stream, []).append(record_of(item, latest))
        return grouped

    async def _append(self, grouped: dict[str, list[Record]]) -> None:
        """Appends to all streams and the queue at once, so that they share a commit. All answers are awaited before any
        failure is raised."""
        wait = grouped.pop(QUEUE, [])
        if not wait:
            await self._append_to_log(grouped)
            return
        answers = await asyncio.gather(self._append_to_log(grouped), self._submit(wait), return_exceptions=True)
        for answer in answers:
            if answer is not None:
                raise answer

    async def _append_to_log(self, grouped: dict[str, list[Record]]) -> None:
        records = {
            stream: items if self._log.batches or rung_wait(stream) is None else packed(stream, items)
            for stream, items in grouped.items()
        }
        errors = await append_to_each(self._log, records)
        for (stream, items), error in zip(grouped.items(), errors, strict=True):
            if error is None:
                self._depths.added(stream, items, len(records[stream]))
        if first := next((error for error in errors if error is not None), None):
            raise first

    async def _submit(self, items: list[Record]) -> None:
        if items:
            assert self._queue is not None
            await self._queue.submit([waiting(item) for item in items])
            self._depths.added(QUEUE, items, len(items))

    async def depth(self) -> list[Depth]:
        """The depth of every rung and due stream."""
        await self._depths.look()
        found = dict.fromkeys(self._streams if self._queue is None else (), 0) | self._depths.by_stream()
        depths = [Depth(stream, rung_wait(stream) or 0.0, items) for stream, items in found.items()]
        # Rungs by their wait, then the due streams.
        return sorted(depths, key=lambda depth: (depth.wait == 0, depth.wait, depth.stream))


class DelayServer:
    """The delay service behind a listener. A Part; the log is the caller's."""

    def __init__(self, service: DelayService, config: DelayConfig) -> None:
        self._service = service
        self._config = config
        self._health = Health(wire.SERVICE)
        self._server: grpc.aio.Server | None = None
        self.address = config.listen

    async def start(self) -> None:
        """Listens; `address` is the actual one from then on."""
        self._server, self.address = await serve(
            self._config.listen,
            [wire.register(self._service), self._health.register],
            self._config.peers,
            chosen_by="`listen` in delay.yaml",
        )
        await self._health.set(True)

    async def drain(self, timeout: float) -> None:
        """Takes nothing new and answers open calls, for at most `timeout` seconds."""
        if self._server is not None:
            await self._health.set(False)
            await self._server.stop(timeout)

    async def stop(self) -> None:
        """Ends now."""
        if self._server is not None:
            await self._server.stop(GRACE)
            self._server = None
