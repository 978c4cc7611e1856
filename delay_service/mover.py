"""Carries parked items on: from the head of each rung to the next one, or to the stream of what is due. Forward only.

The order of a move is append, commit, trim: an item is durable where it goes before its rung's checkpoint passes it. A
crash between append and commit repeats the move, so a copy is possible then (never a loss); the commit follows at once,
for each batch, to keep that window small. The ledger of failed items removes copies. A trim says nothing that the
checkpoint does not say, so it comes seldom: while much moves, after many batches or a second; else when nothing is left
to move.

A rung costs nothing while nothing happens: it sleeps until its head's time, or until something is appended to it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from functools import partial
from operator import add

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import end_all
from ..model.backoff import STORE, Backoff
from ..model.errors import StaleFence, Unavailable
from ..model.parked import Ticket, due_stream, ticket_of
from ..stores.checkpoints.checkpoints import Checkpoints, Mark
from ..stores.log.log import Log, Record, Records, append_to_each
from ..stores.ownership.ownership import Ownership
from .config import DelayConfig
from .leadership import SOURCE, MoverLeadership
from .parcels import packed, unpacked
from .records import UNREADABLE, rung_stream, rung_wait
from .rules.head import Head, behind, gathers
from .rules.ladder import Ladder
from .tracing import tracing

#: A trim while more moves: after so many items, or a share of what may be held at once, since what is not trimmed is
#: still counted as held.
TRIM_ITEMS = 16_384
TRIM_SHARE = 1 / 16
#: … or so many seconds after the last one, where the next head moves sooner than that.
TRIM_EVERY = 1.0
#: Longest wait for an append to an empty rung, seconds (it is woken by the append itself).
LONGEST_WAIT = 3600.0

_LOG = logging.getLogger("tailrace.delay")


class Rung:
    """One rung's position and head. Invariant: everything below `position` is durable further on, so are the items in
    `_appended`, and nothing above it is trimmed: `trimmed` ≤ `position`."""

    def __init__(
        self, stream: str, wait: float, position: int, log: Log, config: DelayConfig, ladder: Ladder, clock: Clock
    ) -> None:
        self.stream = stream
        self.wait = wait
        self.position = position
        self.trimmed = position
        self._trimmed_at = float("-inf")
        self._trim_items = max(1, min(TRIM_ITEMS, int(config.max_items * TRIM_SHARE)))
        self.moved_into = 0  # so many streams, the last time
        self._appended: set[tuple[int, int]] = set()  # while a stream refuses: ⟨position, number in its record⟩ of each
        self._ahead: tuple[int, Records] | None = None  # read while a batch was appended: from where, and what
        self._said = self._heard = 0.0  # what the log's clock said with what was read last, and when (monotonic)
        self._log = log
        self._config = config
        self._ladder = ladder
        self._clock = clock
        # A rung that the configuration no longer has is emptied all the same, by its own wait.
        self._release = Ladder((wait,)).release_at
        self._streams = [rung_stream(each) for each in ladder.rungs]
        self._head = Head(wait)
        self._tracing = tracing()

    async def move(self) -> tuple[int, float | None]:
        """Appends items that have waited their time to where they go next. Returns the position to commit, and seconds
        until the next head may move (0: look again at once; None: the rung is empty)."""
        ahead, self._ahead = self._ahead, None
        found = ahead[1] if ahead is not None and ahead[0] == self.position else await self._read(self.position)
        if not found.positions:
            return self.position, None
        inside: list[list[Record]] = []
        tickets: list[list[Ticket | None]] = []
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        ours = partial(add, behind(self._said, monotonic - self._heard, wall))

        def releases() -> Iterator[float]:
            """Yields the time of release of each record, only as far as a caller asks: half or more of what waits in a
            rung need not be looked at yet."""
            records = map(Record, found.payloads, found.keys, found.headers)
            for entered, record in zip(map(ours, found.times), records, strict=True):
                inside.append(unpacked(record))
                tickets.append([ticket_of(item.headers) for item in inside[-1]])
                yield self._released(entered, tickets[-1])

        count, sleep = self._head.ready(found.positions, map(ours, found.times), releases(), wall, monotonic)
        if not count:
            return self.position, sleep
        grouped: dict[str, dict[tuple[int, int], Record]] = {}
        for at, items, their in zip(found.positions, inside[:count], tickets[:count], strict=False):
            for number, (item, ticket) in enumerate(zip(items, their, strict=True)):
                if (place := (at, number)) not in self._appended:
                    grouped.setdefault(self._next(ticket, wall), {})[place] = item
        self.moved_into = len(grouped)
        position = found.positions[count - 1] + 1
        if count == len(found.positions):
            _, more = await asyncio.gather(self._append_all(grouped, position), self._read(position))
            self._ahead = (position, more) if more.positions else None
        else:
            await self._append_all(grouped, position)
        if self._tracing is not None:
            self._tracing.moved(self.stream, map(ours, found.times), inside[:count], self._clock.wall())
        return position, sleep

    def _released(self, entered: float, tickets: list[Ticket | None]) -> float:
        """Time at which a record may leave its rung: items that travel together wait for the last of them, which is a
        GRAIN at most."""
        if len(tickets) == 1 and (only := tickets[0]) is not None:
            return self._release(entered, 0, only.due)
        return max(entered if each is None else self._release(entered, 0, each.due) for each in tickets)

    async def _append_all(self, grouped: dict[str, dict[tuple[int, int], Record]], position: int) -> None:
        """Appends the items below `position`. Where some streams refuse, items that the others took are not written
        again: by item, since at the next try an item may have to go to another stream than now."""
        records = {stream: self._records(stream, [*items.values()]) for stream, items in grouped.items()}
        answers = dict(zip(records, await append_to_each(self._log, records), strict=True))
        errors = [error for error in answers.values() if error is not None]
        if errors:
            self._appended.update(*[grouped[stream] for stream, error in answers.items() if error is None])
            raise errors[0]
        self._appended = {place for place in self._appended if place[0] >= position}

    def _records(self, stream: str, items: list[Record]) -> list[Record]:
        parcels = not self._log.batches and rung_wait(stream) is not None
        return packed(stream, items) if parcels else items

    async def _read(self, position: int) -> Records:
        config = self._config
        found = await self._log.read(self.stream, 0, position, config.batch_items, config.batch_bytes)
        self._said, self._heard = found.now, self._clock.monotonic()
        return found

    def to_trim(self, sleep: float | None) -> bool:
        """Whether it is time to trim, when `move` said `sleep`."""
        behind = self.position - self.trimmed
        if behind <= 0 or behind >= self._trim_items:
            return behind > 0
        if sleep is None or sleep > TRIM_EVERY:
            return True
        return sleep > 0.0 and self._clock.monotonic() - self._trimmed_at >= TRIM_EVERY

    async def trim(self) -> None:
        """Trims the part of the rung that is durable further on."""
        await self._log.trim(self.stream, 0, self.position)
        self.trimmed, self._trimmed_at = self.position, self._clock.monotonic()

    def _next(self, ticket: Ticket | None, wall: float) -> str:
        if ticket is None:
            _LOG.error("a record in %s is not a parked item; it is kept in the stream %s", self.stream, UNREADABLE)
            return UNREADABLE
        rung = self._ladder.next_rung(ticket.due, ticket.latest, wall)
        return due_stream(ticket.function) if rung is None else self._streams[rung]


class Mover:
    """Moves the items of every rung in `log`. A Part. One at a time: a later one's start ends the earlier one's moves,
    and that one stands by until the later one ends, dies or is cut off.

    `why` says why a rung cannot move now; empty: all can.
    """

    def __init__(
        self,
        log: Log,
        checkpoints: Checkpoints,
        ownership: Ownership,
        config: DelayConfig,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.duties = Duties("delay service")
        self._log = log
        self._checkpoints = checkpoints
        self._leadership = MoverLeadership(ownership, clock)
        self._stands_by = False
        self._config = config
        self._clock = clock
        self._rungs: list[Rung] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._moving: set[str] = set()
        self._draining = asyncio.Event()

    @property
    def stands_by(self) -> bool:
        """Whether another mover leads."""
        return self._stands_by

    @property
    def why(self) -> str:
        """The reason a rung cannot move now; empty: all can."""
        return "; ".join(f"{stream}: {why}" for stream, (_, why) in sorted(self.duties.ailing.items()))

    async def start(self) -> None:
        """Takes over the rungs and moves from then on: at once, or when its stores answer."""
        began = await self._begin()
        self._tasks[SOURCE] = self.duties.begin(self._stay(began), "move-in-turn")

    async def _stay(self, began: bool) -> None:
        while True:
            if not began:
                await self._begin_later()
            await self._leadership.keep()
            await self._stand_down()
            await self._leadership.free()
            self._stands_by = False
            _LOG.info("the other mover is gone: this one moves")
            began = await self._begin()

    async def _stand_down(self) -> None:
        _LOG.info("another mover has taken over; this one stands by")
        await end_all([self._tasks.pop(stream) for stream in list(self._tasks) if stream != SOURCE])
        self.duties.ailing.clear()
        self._stands_by = True

    async def _begin(self) -> bool:
        try:
            rungs = await self.open()
        except StaleFence:  # another one took the lead between two of our calls: `_stay` hears of it at once
            self._leadership.over()
            return True
        except Unavailable as error:
            why = str(error) or type(error).__name__
            if self.duties.ails(SOURCE, why, self._clock.monotonic()):
                _LOG.warning("due items do not move yet: %s", why)
            return False
        if self.duties.well(SOURCE):
            _LOG.info("the stores answer: due items move")
        for rung in rungs:
            self._tasks[rung.stream] = self.duties.begin(self._run(rung), f"move-{rung.stream}")
        return True

    async def _begin_later(self) -> None:
        backoff = Backoff(*STORE, random.random)
        while True:
            await asyncio.sleep(backoff.pause())
            if await self._begin():
                return

    async def open(self) -> list[Rung]:
        """Takes over the rungs, those of the configuration and any others that hold items. Moves nothing yet."""
        self._draining.clear()
        marks = await self._checkpoints.open(SOURCE, await self._leadership.take())
        waits = {rung_stream(wait): wait for wait in self._config.rungs}
        for stream in await self._log.streams():
            wait = rung_wait(stream)
            if wait is not None:
                waits.setdefault(stream, wait)
        ladder = self._config.ladder()
        self._rungs = []
        for stream, wait in waits.items():
            await self._log.create(stream, 1)
            position = marks[stream].position if stream in marks else 0
            self._rungs.append(Rung(stream, wait, position, self._log, self._config, ladder, self._clock))
        return self._rungs

    async def step(self, rung: Rung) -> float | None:
        """One move of one rung: append, commit, trim. Returns as `Rung.move` does. A trim follows a commit at once, if
        only of the same position: that is refused where the stores were put back from a copy, which begins lower."""
        position, sleep = await rung.move()
        committed = position > rung.position
        if committed:
            await self._commit(rung, position)
        if rung.to_trim(sleep):
            if not committed:
                await self._commit(rung, position)
            await rung.trim()
        return sleep

    async def _commit(self, rung: Rung, position: int) -> None:
        await self._checkpoints.commit(SOURCE, self._leadership.epoch, {rung.stream: Mark(position)})
        rung.position = position

    async def _run(self, rung: Rung) -> None:
        backoff = Backoff(*STORE, random.random)
        while not self._draining.is_set():
            self._moving.add(rung.stream)
            try:
                sleep = await self.step(rung)
                self.duties.well(rung.stream)
                backoff.reset()
                if sleep is None and not self._draining.is_set():
                    self._moving.discard(rung.stream)
                    await self._log.wait(rung.stream, {0: rung.position}, LONGEST_WAIT)
                    sleep = 0.0
            except StaleFence:
                self._leadership.over()
                return
            except Exception as error:
                if not isinstance(error, Unavailable):
                    _LOG.exception("%s: a move failed; it is tried again", rung.stream)
                self.duties.ails(rung.stream, str(error) or type(error).__name__, self._clock.monotonic())
                sleep = backoff.pause()
            finally:
                self._moving.discard(rung.stream)
            if self._draining.is_set():
                return
            if sleep:
                await asyncio.sleep(max(sleep, gathers(rung.wait, rung.moved_into)))

    async def drain(self, timeout: float) -> None:
        """Finishes the moves that are under way; the rest stays where it is."""
        self._draining.set()
        idle = [task for stream, task in self._tasks.items() if stream not in self._moving]
        for task in idle:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timeout)
        await self.stop()
        await self._leadership.release()

    async def stop(self) -> None:
        """Ends now. A move that was under way is repeated by the next start."""
        await self.duties.end()
        self._tasks.clear()
        self._moving.clear()
        self._stands_by = False
