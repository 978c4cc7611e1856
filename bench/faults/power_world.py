"""The platform with its data directory on a disk that can be looked at as a power cut would leave it: everything ends
at one moment, and starts again on what the disk had then.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...wire.gateway import GatewayClient
from ..crash_disk import CrashDisk
from .checkpoints_seen import checkpoints
from .disk import SmallDisk
from .feed import FaultFeed
from .journal import Line
from .known_too_soon import JournaledProgress, KnownProgress, known_too_soon
from .looks import Ask, Looks
from .lost_settlements import known_done, ran_again
from .path import QUEUE
from .verdict import Expected, Finding
from .world import FaultWorld, signal_all

#: Ids of one question.
PAGE = 500


class PowerWorld(FaultWorld):
    """A world whose power is cut. Invariant: its disk is unmounted again, also when the world does not start."""

    def __init__(self, folder: Path, heartbeat: float, durability: str = "durable") -> None:
        super().__init__(folder, heartbeat)
        self._crash = CrashDisk(folder / "image-0", folder / "mounted")
        self.data = self._crash.path / "data"
        self.disk = SmallDisk(self.data)
        self.cuts: list[float] = []
        self._durability = durability
        self._feed: FaultFeed | None = None
        self._marks: Looks[JournaledProgress] | None = None
        self._states: Looks[str] | None = None
        self._mounted = False
        self.cut = self._cut

    async def start(self) -> None:
        await asyncio.to_thread(self._crash.make)
        self._crash.mount()
        self._mounted = True
        await super().start()
        self._marks = Looks(partial(checkpoints, self.ports["store"], ("faults",)))
        self._states = Looks(self._asked)
        await asyncio.gather(self._marks.start(), self._states.start())

    def _configured(self) -> Path:
        config = super()._configured()
        (config / "stores.yaml").write_text(f"durability: {self._durability}\n")
        return config

    def feed(self) -> FaultFeed:
        self._feed = super().feed()
        return self._feed

    def put_in(self, id: str) -> float:
        """The time when an item was put in."""
        return 0.0 if self._feed is None else self._feed.expected[id].put

    @contextlib.asynccontextmanager
    async def _asked(self) -> AsyncIterator[Ask[str]]:
        """Asks the gateway which submissions have ended, page by page, among those that were not known to have."""
        async with GatewayClient(self.ports["gateway"]) as client:

            async def ask() -> Iterable[tuple[str, str]]:
                feed = self._feed
                expected = {} if feed is None else feed.expected
                open_ones = [id for id, item in expected.items() if item.source == QUEUE and id not in self._known]
                found: dict[str, str] = {}
                for first in range(0, len(open_ones), PAGE):
                    page = open_ones[first : first + PAGE]
                    for id, status in zip(page, await client.status(page), strict=True):
                        if status is not None and status.ended:
                            found[id] = status.state
                return found.items()

            yield ask

    @property
    def _known(self) -> Mapping[str, str]:
        return {} if self._states is None else self._states.known

    async def _cut(self) -> None:
        """Cuts the power: bytes that were only written are gone. Then everything starts again."""
        self.cuts.append(time.monotonic())
        everybody = [pid for name in self.parts for pid in self.everything_under(name)]
        signal_all(everybody, signal.SIGSTOP)
        found = await asyncio.to_thread(self._crash.cut, self.folder / f"image-{len(self.cuts)}", self._crash.path)
        await asyncio.gather(*(part.lose() for part in self.parts.values()))
        signal_all(everybody, signal.SIGKILL)
        await asyncio.gather(*(part.gone() for part in self.parts.values()))
        await self._exchange(found)
        await self.parts["store"].start()
        await asyncio.gather(*(part.start() for name, part in self.parts.items() if name != "store"))

    async def _exchange(self, found: CrashDisk) -> None:
        self._crash.unmount()
        self._mounted = False
        self._crash.image.unlink()
        self._crash = found
        await asyncio.to_thread(found.mount)
        self._mounted = True

    async def stop(self) -> None:
        for looks in (self._marks, self._states):
            if looks is not None:
                await looks.stop()
        try:
            await super().stop()
        finally:
            if self._mounted:
                self._crash.unmount()

    def judged(self, lines: Sequence[Line], expected: Mapping[str, Expected]) -> tuple[list[Finding], dict[str, Any]]:
        """Findings where a known end did not last: a checkpoint went back, or an item ran again."""
        assert self._marks is not None
        assert self._states is not None
        told = [KnownProgress(*each) for each in self._marks.seen]
        known = known_done(expected, told) | {id: at for at, id, _ in self._states.seen}
        return [*known_too_soon(expected, lines, told), *ran_again(lines, known)], {"known_as_settled": len(known)}
