"""The scenario `plateau`: many workloads are submitted, claimed and settled, one batch after the other, with a bound of
the history small enough to matter; the size of the store must level off.

Work that a server and we do now and then by the clock (sweeps, a vacuum) is done before each look too, so that a short
run shows the same as a long one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from ..assembly.embedded import QUEUE_FILE, EmbeddedStores
from ..model.demand import Cell, Demand
from ..model.errors import InvalidRequest, TailraceError
from ..model.priority import DEFAULT_PRIORITY
from ..stores.config import StoresConfig
from .figures import Figures, Progress
from .queue_engines import ENGINES, NODES
from .server_node import running
from .workload import items

#: Number of functions, and items that go through at once.
FUNCTIONS, BATCH = 20, 256
#: Seconds that a claim is waited for, and holds: more than a busy server's checkpoint takes.
PATIENCE, LEASE = 60.0, 120.0
#: Looks at the sizes, evenly over the run; and the part of the items that the history may keep.
LOOKS, KEPT = 40, 20
#: The beginning of the name of each look's figure: the look's number follows, from 01.
SERIES = "mb_"

#: Measures the store: bytes by the name of its part.
Look = Callable[[], Awaitable[dict[str, float]]]


async def plateau(folder: Path, count: int, progress: Progress, engine: str = "sqlite") -> Figures:
    """`mb_01` … `mb_40`: size of the store after each fortieth of the items, megabytes; `growth`: the largest size of
    the last quarter against the largest of the one before it; of the last look the size of each part (`tables_mb`,
    `indexes_mb`, …)."""
    if engine not in ENGINES:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    keep = max(1, count // KEPT)
    with _choice(folder, engine) as choice:
        config = StoresConfig.model_validate({"queue": choice, "keep_ended": keep})
        async with _look(folder / "data", choice) as look, EmbeddedStores(folder / "data", config) as stores:
            sizes: list[float] = []
            parts: dict[str, float] = {}
            done = 0
            for batch in items(count, FUNCTIONS, size=BATCH):
                await stores.queue.submit(batch)
                demand = Demand(
                    {Cell(f"noop_{number:03}", int(DEFAULT_PRIORITY)): BATCH for number in range(FUNCTIONS)},
                    total=BATCH,
                )
                done += await _run(stores, demand, len(batch))
                if done * LOOKS >= count * (len(sizes) + 1):
                    while await stores.queue.sweep():
                        progress("sweeping", done / count)
                    parts = await look()
                    sizes.append(sum(parts.values()) / 1e6)
                    progress("settling", done / count)
    figures = {f"{SERIES}{number:02}": round(size, 2) for number, size in enumerate(sizes, 1)}
    ends = {f"{name}_mb": round(size / 1e6, 2) for name, size in parts.items()}
    return {"items": float(done), "kept": float(keep), "growth": growth(sizes), **ends, **figures}


async def _run(stores: EmbeddedStores, demand: Demand, count: int) -> int:
    """Claims and settles until so many items are over, and returns their number; a claim takes few while somebody
    submits."""
    done = 0
    while done < count:
        leased = await stores.queue.lease(demand, LEASE, PATIENCE)
        if leased is None:
            raise TailraceError(f"items that were just submitted could not be claimed within {PATIENCE:.0f} s")
        if refused := await stores.queue.settle(leased.fence, leased.ids, []):
            raise TailraceError(f"{len(refused)} items were not settled within their lease of {LEASE:.0f} s")
        done += len(leased.ids)
    return done


def growth(sizes: list[float]) -> float:
    """The largest size in the last quarter of the looks against the largest in the quarter before it."""
    quarter = max(1, len(sizes) // 4)
    before = max(sizes[-2 * quarter : -quarter], default=0.0)
    return round(max(sizes[-quarter:]) / before, 3) if before else 0.0


def series(figures: Figures) -> list[float]:
    """Sizes at the looks of a run, in order."""
    return [figures[name] for name in sorted(figures) if name.removeprefix(SERIES).isdigit()]


@contextlib.contextmanager
def _choice(folder: Path, engine: str) -> Iterator[dict[str, Any]]:
    if engine not in NODES:
        yield {"engine": engine}
        return
    with running(NODES[engine], folder / engine) as node:
        yield {"engine": engine, "url": node.url}


@contextlib.asynccontextmanager
async def _look(data: Path, choice: dict[str, Any]) -> AsyncIterator[Look]:
    """The function that measures the sizes of an engine."""
    if choice["engine"] == "postgres":
        from .sizes_postgres import sizes

        async with sizes(choice["url"]) as look:
            yield look
    elif choice["engine"] == "redis":
        from .sizes_redis import sizes as redis_sizes

        async with redis_sizes(choice["url"]) as look:
            yield look
    else:

        async def files() -> dict[str, float]:
            found = {"file": data / QUEUE_FILE, "log": data / f"{QUEUE_FILE}-wal"}
            return {name: float(path.stat().st_size) if path.exists() else 0.0 for name, path in found.items()}

        yield files
