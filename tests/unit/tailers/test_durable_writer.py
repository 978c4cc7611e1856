"""A durable writer: a lone item goes at once, items that come behind a write are written together."""

from __future__ import annotations

import asyncio

from tailrace.tailers.departures.durable import BATCH_ITEMS, DurableWriter
from tailrace.tailers.rules.departure_linger import LONGER, LONGEST, MANY


async def test_a_lone_item_goes_at_once_and_those_behind_it_gather() -> None:
    # Given a writer that lets items gather behind each write
    written: list[list[str]] = []
    over: asyncio.Queue[list[str]] = asyncio.Queue()

    async def write(batch: list[str]) -> None:
        written.append(batch)

    writer: DurableWriter[str] = DurableWriter(write, over.put_nowait, gathering=True)
    running = asyncio.create_task(writer.run())
    # When one item comes, and others one by one as soon as it is durable
    writer.add("first", 1)
    assert await over.get() == ["first"]
    for name in ("second", "third"):
        writer.add(name, 1)
        for _ in range(10):
            await asyncio.sleep(0)
    # Then the first was written alone, and the others wait for each other
    assert await over.get() == ["second", "third"]
    assert written == [["first"], ["second", "third"]]
    assert not len(writer)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_batch_that_is_there_waits_for_nothing_more() -> None:
    # Given a writer that just wrote so many that it lets more gather for long
    over: asyncio.Queue[list[int]] = asyncio.Queue()

    async def write(batch: list[int]) -> None:
        pass

    writer: DurableWriter[int] = DurableWriter(write, over.put_nowait, gathering=True)
    for number in range(MANY):
        writer.add(number, 1)
    running = asyncio.create_task(writer.run())
    assert len(await over.get()) == MANY
    # When as many come as one write takes
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(BATCH_ITEMS):
        writer.add(number, 1)
    # Then they are written at once
    assert len(await over.get()) == BATCH_ITEMS
    assert loop.time() - began < LONGEST.seconds
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_somebody_waits_for_takes_along_what_gathers() -> None:
    # Given a writer behind a write of so many that it lets more gather for long
    over: asyncio.Queue[list[int]] = asyncio.Queue()

    async def write(batch: list[int]) -> None:
        pass

    writer: DurableWriter[int] = DurableWriter(write, over.put_nowait, gathering=True)
    for number in range(MANY):
        writer.add(number, 1)
    running = asyncio.create_task(writer.run())
    assert len(await over.get()) == MANY
    # When one gathers, and another comes that is awaited
    writer.add(1, 1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    writer.add(2, 1, awaited=True)
    # Then both are written at once
    assert await over.get() == [1, 2]
    assert loop.time() - began < LONGER.seconds
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
