"""Bytes that a tailer sends or writes at once: they are bounded, as a message between two parts is."""

from __future__ import annotations

import asyncio
from typing import Any

from tailrace.model.errors import Unavailable
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.rules.pieces import PIECE_BYTES

LARGE = 300_000
QUEUE = {"kind": "queue"}


class Away:
    """A stand-in for a store's call: it is away at first, then notes how many bytes each call brought."""

    def __init__(self, call: Any, size: Any) -> None:
        self._call, self._size = call, size
        self.away = True
        self.asked = asyncio.Event()
        self.sizes: list[int] = []

    async def __call__(self, given: Any) -> None:
        self.asked.set()
        if self.away:
            raise Unavailable("away for a moment")
        self.sizes.append(self._size(given))
        await self._call(given)


async def test_results_that_gathered_while_their_store_was_away_are_written_in_pieces(
    stores: Any, scheduler: Any, start: Any, eventually: Any, monkeypatch: Any
) -> None:
    # Given a store of results that is away while many large ones come
    away = Away(stores.results.put, lambda results: sum(map(len, results.values())))
    monkeypatch.setattr(type(stores.results), "put", lambda self, results: away(results))
    scheduler.decide = lambda flight, index: Ended(Outcome.SUCCESS, result=b"r" * LARGE)
    scheduler.allow("f")
    await stores.queue.submit([NewItem(Kind("f", 2), b"") for _ in range(30)])
    tailer = await start(source=QUEUE, results=True)
    await eventually(lambda: len(scheduler.ids) == 30 and away.asked.is_set())
    # When it is back, then no write is larger than a message may be
    away.away = False
    await eventually(lambda: tailer.overview().settled == 30)
    assert sum(away.sizes) == 30 * LARGE and max(away.sizes) <= PIECE_BYTES


async def test_letters_that_gathered_likewise(
    stores: Any, scheduler: Any, start: Any, eventually: Any, monkeypatch: Any
) -> None:
    away = Away(stores.dead_letters.add, lambda letters: sum(len(letter.payload) for letter in letters))
    monkeypatch.setattr(type(stores.dead_letters), "add", lambda self, letters: away(letters))
    scheduler.decide = lambda flight, index: Ended(Outcome.FATAL, "broken")
    scheduler.allow("f")
    await stores.queue.submit([NewItem(Kind("f", 2), b"p" * LARGE) for _ in range(30)])
    tailer = await start(source=QUEUE)
    await eventually(lambda: len(scheduler.ids) == 30 and away.asked.is_set())
    # Meanwhile the store is what is told to people, and not the scheduler
    await eventually(lambda: "away for a moment" in tailer.overview().detail)
    assert tailer._pump.status().facts.store == "away for a moment"
    away.away = False
    await eventually(lambda: tailer.overview().dead == 30)
    assert sum(away.sizes) == 30 * LARGE and max(away.sizes) <= PIECE_BYTES


async def test_no_flight_of_a_queue_is_larger(stores: Any, scheduler: Any, start: Any, eventually: Any) -> None:
    scheduler.allow("f")
    await stores.queue.submit([NewItem(Kind("f", 2), b"p" * LARGE) for _ in range(30)])
    tailer = await start(source=QUEUE)
    await eventually(lambda: tailer.overview().settled == 30)
    sizes = [sum(map(len, flight.payloads)) for flight in scheduler.flights]
    assert sum(sizes) == 30 * LARGE and max(sizes) <= PIECE_BYTES


async def test_no_flight_of_a_stream_is_larger(stores: Any, scheduler: Any, start: Any, eventually: Any) -> None:
    await stores.log.create("s", 1)
    for _ in range(10):
        await stores.log.append("s", 0, [Record(b"p" * LARGE)] * 3)
    scheduler.allow("f")
    tailer = await start(source={"kind": "log", "stream": "s"}, function="f")
    await eventually(lambda: tailer.overview().settled == 30)
    sizes = [sum(map(len, flight.payloads)) for flight in scheduler.flights]
    assert sum(sizes) == 30 * LARGE and max(sizes) <= PIECE_BYTES
