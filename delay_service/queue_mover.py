"""The queue as the place to wait: each parked item is a row with its due time, instead of a chain of rungs.

Due items are leased, appended to the due stream of their function, and acknowledged: in the order of a rung, durable
where they go before they are gone here. Due streams are the same as the ladder's: tailers, gates, quotas and ledger
notice nothing. A crash between append and acknowledgement repeats the move when the lease is over: a copy, never a
loss, and the ledger starts one of them. Several movers share a queue by its leases; none waits for another.
"""

from __future__ import annotations

import asyncio
import logging
import random

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..model.backoff import STORE, Backoff
from ..model.claim import Leased, Settle, State
from ..model.demand import Cell, Demand
from ..model.errors import Unavailable
from ..model.linger import DUE_MOVES
from ..model.parked import due_stream, ticket_of
from ..model.workload import NO_EXTRA, Kind
from ..stores.log.log import Log, Record
from ..stores.queue.intake import NewItem
from ..stores.queue.leases import QueueLeases
from .config import DelayConfig
from .records import UNREADABLE

#: The name of the queue among the depths: beside `delay.30s`, of the same kind.
QUEUE = "delay.queue"
#: All that waits is of one kind, so that it is one lane by due time; whose it is stands in its header.
KIND = Kind(QUEUE)
#: Seconds for which a move has its items, and for which a look that finds nothing due waits.
LEASE = 30.0
LOOK = 1.0
#: A queue counts microseconds and cuts: so much later is never earlier.
NEVER_EARLY = 2e-6

_LOG = logging.getLogger("tailrace.delay")


def waiting(record: Record) -> NewItem:
    """A parked item's record as a row that waits for its due time."""
    ticket = ticket_of(record.headers)
    assert ticket is not None  # it was made a moment ago
    return NewItem(KIND, record.payload, due=ticket.due + NEVER_EARLY, headers=record.headers)


class QueueMover:
    """Carries due items from `queue` to the due streams in `log`. A Part."""

    def __init__(self, queue: QueueLeases, log: Log, config: DelayConfig, clock: Clock = SYSTEM_CLOCK) -> None:
        self.duties = Duties("delay service, in a queue")
        self._queue = queue
        self._log = log
        self._clock = clock
        self._items = config.batch_items
        self._demand = Demand({Cell(QUEUE, KIND.priority): self._items}, frozenset(), self._items, config.batch_bytes)
        self._draining = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def why(self) -> str:
        """The reason nothing moves now; empty: the mover is well."""
        return self.duties.ailing.get(QUEUE, (0.0, ""))[1]

    async def start(self) -> None:
        """Moves from now on."""
        self._draining.clear()
        self._task = self.duties.begin(self._run(), "move-from-queue")

    async def step(self, look: float = LOOK) -> int:
        """One move: lease, append, acknowledge. Returns how many items moved, after at most `look` seconds without
        any."""
        leased = await self._queue.lease(self._demand, LEASE, look)
        if leased is None:
            return 0
        streams = _by_stream(leased)
        appends = (self._log.append(stream, 0, records) for stream, (_, records) in streams.items())
        answers = await asyncio.gather(*appends, return_exceptions=True)
        moved: list[str] = []
        back: list[Settle] = []
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        for (ids, _), answer in zip(streams.values(), answers, strict=True):
            if isinstance(answer, BaseException):  # of this stream alone: the others have theirs
                back += [Settle(id, leased.fence, State.NEW, STORE.first) for id in ids]
            else:
                moved += ids
        await self._queue.settle(leased.fence, moved, back)
        if errors:
            raise errors[0]
        return len(leased.ids)

    async def _run(self) -> None:
        backoff = Backoff(*STORE, random.random)
        while not self._draining.is_set():
            try:
                moved = await self.step()
                sleep = DUE_MOVES.seconds if 0 < moved < self._items else 0.0
                backoff.reset()
                self.duties.well(QUEUE)
            except Exception as error:
                news = self.duties.ails(QUEUE, str(error) or type(error).__name__, self._clock.monotonic())
                if not isinstance(error, Unavailable):
                    _LOG.exception("%s: a move failed; it is tried again", QUEUE)
                elif news:
                    _LOG.warning("%s: due items do not move: %s", QUEUE, error)
                sleep = backoff.pause()
            if sleep:
                await asyncio.sleep(sleep)

    async def drain(self, timeout: float) -> None:
        """Finishes the move that is under way; the rest stays where it is."""
        self._draining.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout)
        await self.stop()

    async def stop(self) -> None:
        """Ends now. A move that was under way is repeated when its lease is over."""
        self._task = None
        await self.duties.end()


def _by_stream(leased: Leased) -> dict[str, tuple[list[str], list[Record]]]:
    """The items by the stream that they go to: their ids, and the records to append."""
    grouped: dict[str, tuple[list[str], list[Record]]] = {}
    for index, (id, payload) in enumerate(zip(leased.ids, leased.payloads, strict=True)):
        headers = leased.extras.get(index, NO_EXTRA).headers
        ticket = ticket_of(headers)
        if ticket is None:
            _LOG.error("an item in %s is not a parked item; it is kept in the stream %s", QUEUE, UNREADABLE)
        stream = UNREADABLE if ticket is None else due_stream(ticket.function)
        key = "" if ticket is None else ticket.key
        ids, records = grouped.setdefault(stream, ([], []))
        ids.append(id)
        records.append(Record(payload, key, headers))
    return grouped
