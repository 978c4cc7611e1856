"""Blocking calls in a thread: whoever asked may go away, and what comes of the call is nobody's business then."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from tailrace.stores.log.kafka_gather import KafkaThread


async def test_an_error_for_somebody_who_is_gone_is_no_event() -> None:
    # Given a call under way, of which whoever asked is cancelled
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    begun, go_on, over = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def breaks(_: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(10)
        over.set()
        raise OSError("reset by peer")

    thread: KafkaThread[object] = KafkaThread("test", Closes, lambda error: ValueError(str(error)))
    asking = asyncio.create_task(thread.call(breaks))
    await begun.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    # When it fails
    go_on.set()
    await thread.close()
    assert over.is_set()
    gc.collect()
    # Then nobody is told; and who waits is
    assert not reported
    with pytest.raises(ValueError, match="reset by peer"):
        await thread.call(breaks)
    await thread.close()


class Closes:
    def close(self) -> None:
        """As a client."""
