"""From the inventory's objects to items with positions, some way ahead of whoever reads them.

A segment is durable before an item of it can be read: so a position means the same bytes for ever, whoever dies. What
an earlier run had cut is read again from its segments, then cutting goes on behind the last one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from ...sdk.gunzip import Undecodable
from ...sdk.model.errors import NotConnected, Unavailable
from ...sdk.model.segment import Segment
from ...sdk.objects import Gone, Replaced
from ...stores.inventory.inventory import Inventory
from ...stores.segments.segments import Segments
from ..rules.segments import Cut, Next, following, placed
from .objects_cutting import Cutter, Opened, Part
from .objects_listing import Progress

#: Objects looked at side by side.
TOGETHER = 16
#: Segments written at once; read at once.
BATCH = 512


@dataclass(slots=True, eq=False)
class Loaded:
    """A segment with its items. `done` of them were read."""

    segment: Segment
    part: Part
    done: int = 0


class Feeder:
    """Fills `ready` until it holds `room` bytes. `changed` is set when there is something new in it, `idle` when there
    is nothing to do."""

    def __init__(
        self, inventory: Inventory, segments: Segments, name: str, cutter: Cutter, progress: Progress, room: int
    ) -> None:
        self.ready: deque[Loaded] = deque()
        self.changed = asyncio.Event()
        self.idle = asyncio.Event()
        self.end = 0  # the position that the next item will get
        self._inventory = inventory
        self._segments = segments
        self._name = name
        self._cutter = cutter
        self._progress = progress
        self._room = room
        self._bytes = 0
        self._taken = asyncio.Event()
        self._found = asyncio.Event()
        self._cut: list[Part] = []
        self._cut_bytes = 0
        self._names: dict[int, tuple[str, str]] = {}  # of the objects at hand

    def found(self) -> None:
        """The inventory has more."""
        self._found.set()

    def took(self, size: int) -> None:
        """So many bytes were read from `ready`."""
        self._bytes -= size
        self._taken.set()

    async def run(self, position: int) -> None:
        """Feeds for ever, from a position on. Raises NotConnected."""
        try:
            last = await self._segments.last(self._name)
            self.end = 0 if last is None else last.after
            await self._again(position)
            at = following(last)
            while True:
                self._found.clear()
                self._progress.read = at.ordinal
                self._progress.moved.set()
                at = await self._objects(at)
                await self._write()
                if at.ordinal == self._progress.read:
                    self.idle.set()
                    self.changed.set()
                    await self._found.wait()
                    self.idle.clear()
        except NotConnected:
            raise
        except Unavailable as error:
            raise NotConnected(f"the notes of {self._name}: {error}") from error

    async def load(self, segment: Segment) -> Part | None:
        """The items of a segment; None: they are not there any more."""
        key, _ = await self._name_of(segment.ordinal)
        try:
            return await self._cutter.again(segment, key) if key else None
        except (Gone, Replaced, Undecodable):
            return None

    async def _again(self, position: int) -> None:
        """What was cut before."""
        while position < self.end:
            for segment in await self._segments.read(self._name, position, BATCH):
                part = await self.load(segment)
                gone = Part(Cut(*segment[1:]), "", 0.0, [])
                await self._put(Loaded(segment, part or gone, max(0, position - segment.first)))
                position = segment.after

    async def _objects(self, at: Next) -> Next:
        """The next objects of the inventory, as many as can be looked at side by side."""
        entries = await self._inventory.read(self._name, at.ordinal, TOGETHER)
        begun = bool(at.version and entries.positions)
        listed = list(zip(entries.names, entries.versions, strict=True))
        opened = [Opened(None)] * begun + await _all([self._cutter.look(key, etag) for key, etag in listed[begun:]])
        for ordinal, (key, etag), one in zip(entries.positions, listed, opened, strict=True):
            async for parts in self._cutter.cut(ordinal, key, etag, one, at):
                self._cut.extend(parts)
                self._cut_bytes += sum(map(weight, parts))
                if len(self._cut) >= BATCH or self._cut_bytes >= self._room // 2:
                    await self._write()
            at = Next(0, ordinal + 1)
        return at

    async def _write(self) -> None:
        """Makes durable what was cut, then lets it be read."""
        cut, self._cut, self._cut_bytes = self._cut, [], 0
        if not cut:
            return
        segments = placed(self.end, [part.cut for part in cut])
        if not await self._segments.append(self._name, segments):
            raise NotConnected(f"somebody else reads {self._name} as well, and went on from {self.end}")
        self.end = segments[-1].after
        for segment, part in zip(segments, cut, strict=True):
            await self._put(Loaded(segment, part))

    async def _put(self, loaded: Loaded) -> None:
        while self._bytes >= self._room:
            self._taken.clear()
            await self._taken.wait()
        self._bytes += weight(loaded.part)
        self.ready.append(loaded)
        self.changed.set()

    async def _name_of(self, ordinal: int) -> tuple[str, str]:
        if ordinal not in self._names:
            found = await self._inventory.read(self._name, ordinal, TOGETHER)
            pairs = zip(found.names, found.versions, strict=True)
            self._names = dict(zip(found.positions, pairs, strict=True))
        return self._names.get(ordinal, ("", ""))


def weight(part: Part) -> int:
    """About how much memory it takes."""
    return sum(map(len, part.payloads)) + 64 * len(part.payloads) + 256


async def _all(looks: list[Coroutine[Any, Any, Opened]]) -> list[Opened]:
    """Side by side; the first error when all have ended."""
    found = await asyncio.gather(*looks, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if isinstance(one, Opened)]
