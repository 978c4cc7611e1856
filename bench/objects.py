"""The scenario `objects`: lines in a local folder go to no-op functions; and the memory of a listing of very many keys
is measured."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..foundation.object_places import Place
from ..foundation.objects import ObjectStore
from ..tailers.sources.listing import Patterns
from ..tailers.sources.objects_listing import Lister, ListingProgress
from ..wire.gateway import GatewayClient
from .figures import Figures
from .figures import Progress as Show
from .process import resident_bytes
from .scenarios import FUNCTIONS, throughput
from .workload import PAYLOAD, write_tailer

OBJECTS = 8
KEYS = 1_000_000
FOLDER = 1000


async def objects(folder: Path, count: int, progress: Show) -> Figures:
    """Runs `count` lines of 200 B in a few objects of a local folder → no-op functions, settled."""
    place = folder / "in"
    place.mkdir()
    each = max(1, count // OBJECTS)
    for number in range(OBJECTS):
        with (place / f"{number}.jsonl").open("wb") as file:
            for start in range(0, each, 1000):
                file.write((PAYLOAD + b"\n") * min(1000, each - start))
        progress("writing objects", number / OBJECTS)
    tailer = f"name: bench\nsource: {{kind: objects, url: 'file://{place}', format: jsonl}}\nfunction: noop_000\n"
    platform = Platform(folder / "data", [FUNCTIONS], tailers=[write_tailer(folder, tailer)])

    async def settled(gateway: GatewayClient) -> int:
        overview = await gateway.overview()
        return sum(tailer.settled for tailer in overview.tailers if tailer.name == "bench")

    figures = await throughput(platform, settled, OBJECTS * each, progress)
    return figures | await listing(folder, min(KEYS, 4 * count), progress)


async def listing(folder: Path, keys: int, progress: Show) -> Figures:
    """Lists so many keys of a real folder into the inventory, and again when it knows them all. Measures the time, and
    the growth of this process's memory after the first tenth."""
    place = folder / "keys"
    for number in range(0, keys, FOLDER):
        under = place / f"{number:09}"
        under.mkdir(parents=True)
        for each in range(number, min(keys, number + FOLDER)):
            (under / f"{each:09}").touch()
        progress("making keys", number / keys)
    async with EmbeddedStores(folder / "listing") as stores:
        lister = Lister(
            ObjectStore(Place(url=f"file://{place}")),
            stores.inventory,
            "bench",
            Patterns(("*",), ()),
            versions=True,
            overlap=None,
            found=lambda: None,
            progress=ListingProgress(),
        )
        memory = dict[float, int]()

        async def watch() -> None:
            while True:
                share = lister.listings + await stores.inventory.end("bench") / keys
                memory[share] = max(memory.get(share, 0), resident_bytes(os.getpid()))
                progress("listing", min(1.0, share / 2))
                await asyncio.sleep(0.1)

        watching = asyncio.create_task(watch())
        took = []
        for _ in range(2):
            began = time.perf_counter()
            await lister.list()
            took.append(time.perf_counter() - began)
        watching.cancel()
        assert await stores.inventory.end("bench") == keys
    early = [size for share, size in memory.items() if share <= 0.1] or list(memory.values())
    return {
        "keys": float(keys),
        "list_first_s": took[0],
        "list_again_s": took[1],
        "list_mb": max(memory.values()) / 1e6,
        "list_growth_mb": (max(memory.values()) - max(early)) / 1e6,
    }
