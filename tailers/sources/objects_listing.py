"""Listing of a place, page by page, into the inventory, which knows what is new.

Nothing of a listing is kept in memory but one page.
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

#: Keys of one page.
PAGE = 1000
#: Listing takes at most this share of the time, however many objects there are.
LISTING_SHARE = 0.1
#: A listing in the order of keys stays at most so many objects ahead of their reading.
AHEAD = 100_000


@dataclass(slots=True)
class ListingProgress:
    """Progress of reading and settling, by positions of objects in the inventory; `moved`: more were read."""

    read: int = 0
    settled: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Lister:
    """Lists one place. `overlap`: in the order of keys, so many of the greatest are looked at again (None: every
    listing is whole). `found` is called when something is new.

    listings  whole listings so far
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
        self._waited = 0.0  # seconds for the reading, in the current listing

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
        """One listing: whole, or what comes after the floor."""
        floor = "" if self._overlap is None else await self._inventory.floor(self._name)
        async for page in self._store.pages(floor, PAGE):
            entries = [self._entry(each) for each in page if self._patterns.wanted(each.key)]
            if await self._inventory.offer(self._name, entries):
                self._found()
            if self._overlap is not None and self._store.place.scheme in SORTED:
                await self._keep_up()
        self.listings += 1
        self._found()  # a former owner that is not quite dead may have offered something too
        if self._overlap is not None and self._store.place.scheme not in SORTED:
            await self._inventory.raise_floor(self._name, self._overlap, self._progress.settled)

    def _entry(self, listed: Listed) -> InventoryEntry:
        return InventoryEntry(listed.key, listed.etag if self._versions else "")

    async def _keep_up(self) -> None:
        """In the order of keys what was listed is never listed again but for the overlap."""
        assert self._overlap is not None
        await self._inventory.raise_floor(self._name, self._overlap, self._progress.settled)
        began = time.monotonic()
        while await self._inventory.end(self._name) > self._progress.read + AHEAD:
            self._progress.moved.clear()
            await self._progress.moved.wait()
        self._waited += time.monotonic() - began
