"""Listing of a place of objects, page by page, into the inventory, which knows which objects are new.

Only one page of a listing is kept in memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ...foundation.objects import SORTED, Listed, ObjectStore
from ...model.errors import NotConnected, Unavailable
from ...stores.inventory.inventory import Inventory, InventoryEntry
from .listing import Patterns

#: Keys on one page.
PAGE = 1000
#: Listing takes at most this share of the time, however many objects there are.
LISTING_SHARE = 0.1
#: A listing in the order of keys stays at most so many objects ahead of their reading.
AHEAD = 100_000


@dataclass(slots=True)
class ListingProgress:
    """Progress of reading and settling, by positions of objects in the inventory; `moved` is set when more were
    read."""

    read: int = 0
    settled: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Lister:
    """Lists one place. `overlap`: in the order of keys, the number of greatest keys that are looked at again (None:
    every listing is whole). `found` is called when there are new objects.

    listings  number of whole listings so far
    """

    def __init__(
        self,
        store: ObjectStore,
        inventory: Inventory,
        name: str,
        patterns: Patterns,
        *,
        versions: bool,
        overlap: int | None,
        found: Callable[[], None],
        progress: ListingProgress,
    ) -> None:
        self.listings = 0
        self._store = store
        self._inventory = inventory
        self._name = name
        self._patterns = patterns
        self._versions = versions
        self._overlap = overlap
        self._found = found
        self._progress = progress
        self._waited = 0.0  # seconds of waits for the reading, in the current listing

    async def run(self, poll: float, once: bool) -> None:
        """Lists for ever, `poll` seconds apart; with `once` one time. Raises NotConnected."""
        while True:
            began, self._waited = time.monotonic(), 0.0
            try:
                await self.list()
            except NotConnected:
                raise
            except Unavailable as error:
                raise NotConnected(f"the inventory of {self._store.place.url}: {error}") from error
            if once:
                return
            await asyncio.sleep(max(poll, (time.monotonic() - began - self._waited) / LISTING_SHARE))

    async def list(self) -> None:
        """Lists once: everything, or the keys behind the floor."""
        floor = "" if self._overlap is None else await self._inventory.floor(self._name)
        rising = self._overlap is not None and self._store.place.scheme in SORTED
        async for page in self._store.pages(floor, PAGE, rising=rising):
            entries = [self._entry(each) for each in page if self._patterns.wanted(each.key)]
            if await self._inventory.offer(self._name, entries):
                self._found()
            if rising:
                await self._keep_up()
        self.listings += 1
        self._found()  # a former owner that is not quite dead may have offered something too
        if self._overlap is not None and not rising:
            await self._inventory.raise_floor(self._name, self._overlap, self._progress.settled)

    def _entry(self, listed: Listed) -> InventoryEntry:
        return InventoryEntry(listed.key, listed.etag if self._versions else "")

    async def _keep_up(self) -> None:
        """Raises the floor, so that keys are listed only once, except for the overlap; and waits while the listing is
        far ahead of the reading."""
        assert self._overlap is not None
        await self._inventory.raise_floor(self._name, self._overlap, self._progress.settled)
        began = time.monotonic()
        while await self._inventory.end(self._name) > self._progress.read + AHEAD:
            self._progress.moved.clear()
            await self._progress.moved.wait()
        self._waited += time.monotonic() - began
