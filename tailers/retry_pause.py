"""The pause before something that failed is tried again, which an operator or an event may cut short."""

from __future__ import annotations

import asyncio
import contextlib
import random

from ..model.jitter import jittered


class RetryPause:
    """A signal that ends the pauses of several tasks. Each task notes `cuts` before it tries: a signal during a try is
    for the next one, since the try under way may have begun too early."""

    def __init__(self) -> None:
        self.cuts = 0  # number of signals so far
        self._event = asyncio.Event()

    def cut_short(self) -> None:
        """Ends all pauses at once."""
        self.cuts += 1
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, pause: float, noted: int) -> None:
        """Waits about `pause` seconds; not at all if there was a signal since `noted`."""
        if self.cuts == noted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(jittered(pause, random.random)):
                    await self._event.wait()
