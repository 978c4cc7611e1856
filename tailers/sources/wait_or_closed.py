"""A source's wait for something to read, which its `close` ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ...foundation.lifecycle import end_all

T = TypeVar("T")


async def wait_or_closed(wait: Coroutine[Any, Any, T], closed: asyncio.Event) -> T | None:
    """The answer of a wait; None once `closed` is set, whatever the wait says then. The wait has ended in any case.

    A cancellation comes before what the wait says in the same moment: whoever took its error for an answer would go on
    reading for nobody.
    """
    waiting = asyncio.create_task(wait)
    closing = asyncio.create_task(closed.wait())
    try:
        await asyncio.wait([waiting, closing], return_when=asyncio.FIRST_COMPLETED)
    finally:
        closing.cancel()
        if not waiting.done() or closed.is_set():  # else no turn of the event loop is lost
            await end_all([waiting])
    return None if closed.is_set() or waiting.cancelled() else waiting.result()
