"""Waiting for records of Kafka: one request for all waiters, now and then; appends of this process are known at
once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...foundation.lifecycle import cancel
from ...model.errors import Unavailable
from ...model.linger import KAFKA_LOOKS

#: Seconds between two looks for streams and partitions made elsewhere.
DISCOVER_EVERY = 1.0

#: The end of each partition of each stream.
Ends = dict[str, dict[int, int]]


class KafkaWatch:
    """A watch over the ends of streams. `look` returns the ends of streams; with `True` it looks for new partitions
    too.

    Invariant: no end in `_ends` is beyond the real one, and none goes back.
    """

    def __init__(self, look: Callable[[Sequence[str], bool], Awaitable[Ends]]) -> None:
        self._look = look
        self._ends: Ends = {}
        self._wanted: Counter[str] = Counter()
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def saw(self, stream: str, partition: int, end: int) -> None:
        """Notes the end of a partition that became known."""
        ends = self._ends.setdefault(stream, {})
        if end > ends.get(partition, -1):
            ends[partition] = end
            self._moved.set()
            self._moved = asyncio.Event()

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        """Returns when some end is past the one given, or after `timeout` seconds."""
        self._wanted[stream] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(timeout):
                while not any(end > ends.get(n, 0) for n, end in self._ends.get(stream, {}).items()):
                    await self._moved.wait()
        except TimeoutError:
            return
        finally:
            self._wanted[stream] -= 1

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        discovered: dict[str, float] = {}
        while streams := [stream for stream, count in self._wanted.items() if count > 0]:
            now = clock()
            new = [stream for stream in streams if now >= discovered.get(stream, 0.0) + DISCOVER_EVERY]
            with contextlib.suppress(Unavailable):
                for stream, ends in (await self._look(streams, bool(new))).items():
                    for partition, end in ends.items():
                        self.saw(stream, partition, end)
                discovered.update(dict.fromkeys(new, now))
            await asyncio.sleep(KAFKA_LOOKS.seconds)  # a record of another process is seen so much later at most

    async def close(self) -> None:
        """Stops looking."""
        task, self._task = self._task, None
        if task is not None:
            await cancel(task)
