"""Due streams of a log that is another process's: a wait for more of it may end as nobody foresaw."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.stores.server import StoreServer
from tailrace.tailers.sources.due import DueSource, DueStream


@pytest.mark.parametrize("error", [ValueError("planted"), asyncio.CancelledError()])
async def test_a_wait_that_fails_is_raised_by_the_next_read_and_nothing_is_left_lying(stores, monkeypatch, error):
    # Given a source of what is due, and a wait for more that fails, once
    failed, more = asyncio.Event(), DueStream.more

    async def fails(stream):
        if not failed.is_set():
            failed.set()
            raise error
        await more(stream)

    monkeypatch.setattr(DueStream, "more", fails)
    server = StoreServer("127.0.0.1:0", stores.engines())
    await server.start()
    log = RemoteLog(server.address, "delay_log")
    source = DueSource(log)
    try:
        await log.append("due.f", 0, [Record(b"first")])
        await source.open({})
        assert [batch.payloads for batch in await source.read(10, 1 << 20, 5.0)] == [[b"first"]]
        await asyncio.wait_for(failed.wait(), 5.0)
        # When there is more, Then whoever reads is told, opens it again and has it
        await log.append("due.f", 0, [Record(b"second")])
        with pytest.raises(NotConnected, match="waiting for due items of f"):
            await source.read(10, 1 << 20, 5.0)
        await source.close()
        await source.open({"f": 1})
        assert [batch.payloads for batch in await source.read(10, 1 << 20, 5.0)] == [[b"second"]]
    finally:
        await source.close()
        await log.close()
        await server.stop()
