"""The feeding of an object source: the inventory's objects become items with positions, some way ahead of the reader.

A segment is durable before an item of it can be read: so a position means the same bytes for ever, whichever process
dies. Objects that an earlier run cut are read again from their segments, then cutting goes on behind the last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from ...foundation.gunzip import Undecodable
from ...foundation.objects import Gone, Replaced, Unread
from ...model.errors import NotConnected, Unavailable
from ...model.segment import Segment
from ...stores.inventory.inventory import Inventory
from ...stores.segments.segments import Segments
from ..rules.segments import Cut, NextPlace, following, placed
from ..rules.unreadable import ReadVerdict, Unreadable
from .objects_cutting import CutItems, Cutter, OpenedObject
from .objects_listing import ListingProgress

#: Objects that are looked at side by side.
TOGETHER = 16
#: Segments that are written at once, or read at once.
BATCH = 512


@dataclass(slots=True, eq=False)
class Loaded:
    """A segment with its items, of which `done` were read."""

    segment: Segment
    part: CutItems
    done: int = 0


class Feeder:
    """Fills `ready` until it holds `room` bytes. `changed` is set when it has something new, `idle` when there is
    nothing to do."""

    def __init__(
        self,
        inventory: Inventory,
        segments: Segments,
        name: str,
        cutter: Cutter,
        progress: ListingProgress,
        room: int,
        unreadable: Unreadable,
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
        self._unreadable = unreadable
        self._room = room
        self._bytes = 0
        self._taken = asyncio.Event()
        self._found = asyncio.Event()
        self._cut: list[CutItems] = []
        self._cut_bytes = 0
        self._names: dict[int, tuple[str, str]] = {}  # names and versions of objects read last, by ordinal

    def found(self) -> None:
        """Hears that the inventory has more objects."""
        self._found.set()

    def took(self, size: int) -> None:
        """Notes that `size` bytes were read from `ready`."""
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
            raise NotConnected(f"the inventory or segments of {self._name}: {error}") from error

    async def load(self, segment: Segment) -> CutItems | None:
        """The items of a segment, read again; None: they are not there any more."""
        key, _ = await self._name_of(segment.ordinal)
        while True:
            try:
                part = await self._cutter.again(segment, key) if key else None
            except (Gone, Replaced, Undecodable):
                return None
            except Unread as error:
                if await self._is_given_up(segment.ordinal, key, error):
                    return self._cutter.unreadable(Cut(*segment[1:]), key, str(error))
            else:
                self._unreadable.answered(key)
                return part

    async def place(self, segment: Segment, index: int, until: float) -> str:
        """The place of an item of a segment in words, read again until a time of the loop."""
        key, _ = await self._name_of(segment.ordinal)
        try:
            async with asyncio.timeout_at(until):
                return await self._cutter.place(segment, key, index)
        except (Gone, Replaced, Undecodable, Unread, TimeoutError):
            return self._cutter.about(segment, key)

    async def _again(self, position: int) -> None:
        """Reads again the segments that were cut before, from a position on."""
        while position < self.end:
            for segment in await self._segments.read(self._name, position, BATCH):
                part = await self.load(segment)
                gone = CutItems(Cut(*segment[1:]), "", 0.0, [])
                await self._put(Loaded(segment, part or gone, max(0, position - segment.first)))
                position = segment.after

    async def _objects(self, at: NextPlace) -> NextPlace:
        """Looks at the next objects of the inventory, side by side, and cuts them; returns the place behind them."""
        entries = await self._inventory.read(self._name, at.ordinal, TOGETHER)
        begun = bool(at.version and entries.positions)
        listed = list(zip(entries.names, entries.versions, strict=True))
        looked = await _all([self._cutter.look(key, etag) for key, etag in listed[begun:]])
        for (key, _), one in zip(listed[begun:], looked, strict=True):
            if isinstance(one, OpenedObject) and one.facts is not None:
                self._unreadable.answered(key)
        opened: list[OpenedObject | Unread] = [*[OpenedObject(None)] * begun, *looked]
        for ordinal, (key, etag), one in zip(entries.positions, listed, opened, strict=True):
            await self._object(ordinal, key, etag, one, at)
            at = NextPlace(0, ordinal + 1)
        return at

    async def _object(self, ordinal: int, key: str, etag: str, one: OpenedObject | Unread, at: NextPlace) -> None:
        """Cuts one object. Raises Unread while it may be the whole store that cannot be read; parts cut so far are
        kept."""
        while True:
            try:
                if isinstance(one, Unread):
                    raise one
                async for parts in self._cutter.cut(ordinal, key, etag, one, at):
                    self._cut.extend(parts)
                    self._cut_bytes += sum(map(weight, parts))
                    if len(self._cut) >= BATCH or self._cut_bytes >= self._room // 2:
                        await self._write()
                    last = parts[-1].cut
                    at = NextPlace(0, ordinal, last.version, last.offset + last.length)
                return
            except Unread as error:
                if await self._is_given_up(ordinal, key, error):
                    version, offset = (at.version, at.offset) if at.ordinal == ordinal else ("", 0)
                    rest = Cut(1, ordinal, version, offset, 0, end=True)
                    self._cut.append(self._cutter.unreadable(rest, key, str(error)))
                    return
                if at.ordinal == ordinal and at.version:
                    continue
                one = (await _all([self._cutter.look(key, etag)]))[0]

    async def _is_given_up(self, ordinal: int, key: str, error: Unread) -> bool:
        """Whether an object is given up as unreadable; False: it is to be tried again at once. Raises the error while
        it is unknown whether any other object can be read, or as long as this one may become readable."""
        verdict = self._unreadable.failed(key, error.refused, time.monotonic())
        if verdict is ReadVerdict.UNREADABLE:
            return True
        if verdict is ReadVerdict.UNKNOWN and await self._other_is_read(ordinal, key) and error.refused:
            return False
        await self._write()
        raise error

    async def _other_is_read(self, ordinal: int, key: str) -> bool:
        """Whether the object that was read last, or one near by or further and further away, can be read."""
        end = await self._inventory.end(self._name)
        steps = [sign << exponent for exponent in range(end.bit_length()) for sign in (-1, 1)]
        places = dict.fromkeys([*(ordinal + step for step in steps), 0, end - 1])
        names = [self._unreadable.read_last]
        for place in [None, *(place for place in places if 0 <= place < end)]:
            if place is not None:
                names = (await self._inventory.read(self._name, place, 1)).names
            for name in names:
                with contextlib.suppress(Unread, Gone, Replaced):
                    if name not in ("", key):
                        await self._cutter.touch(name)
                        self._unreadable.answered(name)
                        return True
        return False

    async def _write(self) -> None:
        """Writes the segments of the parts cut so far, then lets their items be read."""
        cut, self._cut, self._cut_bytes = self._cut, [], 0
        if not cut:
            return
        segments = placed(self.end, [part.cut for part in cut])
        if not await self._segments.append(self._name, segments):
            raise NotConnected(f"{self._name}: another process reads it as well, and went on from {self.end}")
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


def weight(part: CutItems) -> int:
    """Bytes of memory that cut items take, about."""
    return sum(map(len, part.payloads)) + 64 * len(part.payloads) + 256


async def _all(looks: list[Coroutine[Any, Any, OpenedObject]]) -> list[OpenedObject | Unread]:
    """Looks at objects side by side. Raises, once all looks have ended, the first error other than Unread."""
    found = await asyncio.gather(*looks, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, Unread):
            raise one
    return [one for one in found if isinstance(one, OpenedObject | Unread)]
