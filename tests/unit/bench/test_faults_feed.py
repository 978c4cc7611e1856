"""Records are put in once, as far as a log that breaks lets one know, and each is expected where it is."""

from __future__ import annotations

import asyncio

from tailrace.bench.faults.fed_streams import FedLog
from tailrace.bench.faults.feed import FaultFeed
from tailrace.bench.faults.path import STREAM
from tailrace.bench.faults.plan import FedItem
from tailrace.model.errors import Unavailable
from tailrace.stores.log.log import Bounds, Records


class Log:
    """A log of one partition. `answers` are the fates of appends: kept, unknown (kept, without an answer), in part (the
    first record is kept, without an answer) or lost (nothing is, without one); `ends`, if any, are said first when its
    end is asked."""

    def __init__(self, answers=(), ends=()):
        self.records, self.answers, self.said = [], list(answers), list(ends)

    async def append(self, stream, partition, records):
        answer = self.answers.pop(0) if self.answers else "kept"
        first = len(self.records)
        if answer != "lost":
            self.records += records[:1] if answer == "in part" else records
        if answer != "kept":
            raise Unavailable("no answer")
        return first

    async def bounds(self, stream):
        return {0: Bounds(0, self.said.pop(0) if self.said else len(self.records))}

    async def read(self, stream, partition, position, limit, max_bytes):
        payloads = [record.payload for record in self.records[position:]]
        return Records(list(range(position, len(self.records))), [], [], [], payloads)


async def put(log, chunks):
    feed = FaultFeed(None, FedLog(log, "t", ["t/0"]))
    async with asyncio.timeout(20):
        for _ in range(chunks):
            for task in feed.put([FedItem(STREAM, "work", {})] * 2):
                await task
    assert set(feed.expected) == {f"t/0/{position}" for position in range(len(log.records))}
    return len(log.records)


async def test_an_append_without_an_answer_that_is_there_is_not_repeated():
    assert await put(Log(["kept", "unknown", "kept"]), 3) == 6


async def test_an_append_without_an_answer_that_is_not_there_is_repeated():
    assert await put(Log(["kept", "lost", "lost", "kept"]), 3) == 6


async def test_a_new_leader_that_knows_less_for_a_moment_is_waited_for():
    assert await put(Log(["kept", "lost"], ends=[0, 0]), 3) == 6


async def test_of_an_append_without_an_answer_that_is_there_in_part_the_rest_is_put_in():
    assert await put(Log(["kept", "in part", "kept"]), 2) == 4
