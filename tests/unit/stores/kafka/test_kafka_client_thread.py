"""Blocking calls in a thread: the caller may go away, and the result of its call is nobody's business then."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from tailrace.stores.kafka.client_thread import KafkaThread


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


async def test_a_call_made_while_it_closes_waits_and_gets_an_object_of_its_own() -> None:
    # Given a thread whose object is being closed, which takes a while
    loop = asyncio.get_running_loop()
    closing, go_on = asyncio.Event(), threading.Event()
    under_way = 0

    class Slow:
        def close(self) -> None:
            nonlocal under_way
            under_way += 1
            loop.call_soon_threadsafe(closing.set)
            go_on.wait(10)
            under_way -= 1

    thread: KafkaThread[Slow] = KafkaThread("test", Slow, lambda error: ValueError(str(error)))
    first = await thread.call(lambda made: made)
    over = asyncio.create_task(thread.close())
    await closing.wait()
    # When somebody calls, and somebody closes it once more
    asking = asyncio.create_task(thread.call(lambda made: (made, under_way)))
    again = asyncio.create_task(thread.close())
    await asyncio.sleep(0)
    assert not asking.done() and not again.done()
    go_on.set()
    # Then the call gets another object, when the first is gone
    second, beside = await asyncio.wait_for(asking, 10)
    assert second is not first and not beside
    await asyncio.gather(over, again)
    await thread.close()


class Closes:
    def close(self) -> None:
        """Closes nothing."""
