"""Waits of a source: they answer, or `close` ends them, and nothing of them is left."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.model.errors import Unavailable
from tailrace.tailers.sources.wait_or_closed import wait_or_closed


async def answers(what: int) -> int:
    await asyncio.sleep(0)
    return what


async def fails() -> int:
    raise Unavailable("away")


async def test_the_answer_of_a_wait_comes_through_and_so_does_its_error() -> None:
    assert await wait_or_closed(answers(7), asyncio.Event()) == 7
    with pytest.raises(Unavailable):
        await wait_or_closed(fails(), asyncio.Event())


async def test_a_close_ends_the_wait_whatever_it_says_then() -> None:
    # Given a wait that goes on until it is ended
    ended, closed = asyncio.Event(), asyncio.Event()

    async def goes_on() -> int:
        try:
            await asyncio.Event().wait()
            return 1
        finally:
            ended.set()

    waiting = asyncio.create_task(wait_or_closed(goes_on(), closed))
    await asyncio.sleep(0)
    # When it is closed
    closed.set()
    # Then it has ended, and nobody is told of an error that comes in that moment
    assert await waiting is None
    assert ended.is_set()
    assert await wait_or_closed(fails(), closed) is None


async def test_a_cancellation_ends_the_wait_before_it_is_told() -> None:
    ended = asyncio.Event()

    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(wait_or_closed(goes_on(), asyncio.Event()))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
