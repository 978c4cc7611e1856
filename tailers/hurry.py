"""The rest of what failed, before it is tried again, which somebody may cut short."""

from __future__ import annotations

import asyncio
import contextlib
import random

from ..model.jitter import jittered


class Hurry:
    """A signal that several rest by. Each notes `said` before it tries: what is said while it tries is for its next
    try, since the one under way may have begun too early."""

    def __init__(self) -> None:
        self.said = 0  # how often
        self._event = asyncio.Event()

    def say(self) -> None:
        """Wakes all that rest: they go on at once."""
        self.said += 1
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def rest(self, pause: float, noted: int) -> None:
        """Waits about `pause` seconds; not at all where it was said since `noted`."""
        if self.said == noted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(jittered(pause, random.random)):
                    await self._event.wait()
