"""A source's wait for records, which its `close` ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ...foundation.lifecycle import end_all

T = TypeVar("T")


async def wait_or_closed(wait: Coroutine[Any, Any, T], closed: asyncio.Event) -> T | None:
    """Returns the answer of a wait; None once `closed` is set, whatever the answer is then. The wait has ended in any
    case.

    A cancellation goes before an answer of the same moment: a caller that took an error of the wait for the answer
    would go on reading for nobody.
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
