"""Ends a run before its time: on SIGTERM it ends the processes that it started, gives its disk back, and ends
itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..foundation.loop import say_where_it_ends

T = TypeVar("T")

#: The exit status by which a shell knows a program that SIGTERM ended.
STATUS = 128 + signal.SIGTERM


def until_told(run: Callable[[Coroutine[Any, Any, T]], T], work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` by `run` (`asyncio.run` or the like), and returns its result. SIGTERM cancels it, as ^C does; when it
    has cleaned up, SystemExit is raised. A second SIGTERM changes nothing."""
    told = False
    say_where_it_ends()

    async def main() -> T:
        mine = asyncio.current_task()
        assert mine is not None

        def tell() -> None:
            nonlocal told
            if not told:
                told = True
                mine.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, tell)
        return await work

    try:
        return run(main())
    except asyncio.CancelledError:
        if told:
            raise SystemExit(STATUS) from None
        raise
