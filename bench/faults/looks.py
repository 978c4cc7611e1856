"""Looks from outside at progress or ownership: a client of our own asks again and again, whatever breaks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

T = TypeVar("T")

#: Seconds between two questions.
EVERY = 0.25

#: Asks for news since the last answer, or for the present state, of each stream by its place, in order.
Ask = Callable[[], Awaitable[Iterable[tuple[str, T]]]]
#: Opens a connection to ask on.
Connect = Callable[[], AbstractAsyncContextManager[Ask[T]]]


class Looks(Generic[T]):
    """Asks for as long as it runs. A Part. `seen` are all answers with news, each with its time (the machine's
    monotonic clock) and its place, `known` the latest of each place."""

    def __init__(self, connect: Connect[T]) -> None:
        self.seen: list[tuple[float, str, T]] = []
        self.known: dict[str, T] = {}
        self.answers = 0
        self._connect = connect
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._ask_on(), name="looks")

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _ask_on(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the server is away, as the run means it to be
                async with self._connect() as ask:
                    while True:
                        self._take(await ask())
                        await asyncio.sleep(EVERY)
            await asyncio.sleep(EVERY)

    def _take(self, answer: Iterable[tuple[str, T]]) -> None:
        now = time.monotonic()
        self.answers += 1
        for place, what in answer:
            if self.known.get(place) != what:
                self.known[place] = what
                self.seen.append((now, place, what))
