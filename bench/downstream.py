"""The scenario `downstream`: a downstream takes 500 calls a second of functions whose items come from three sources;
its capacity is halved, and restored."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.log.log import Record
from ..stores.queue.queue import NewItem
from .downstream_functions import CALLERS
from .figures import Figures, Progress
from .shared_downstream import Downstream

#: Calls a second that it takes, and the shares of that to which it is held, one after the other.
CAPACITY, PARTS = 500.0, (1.0, 0.5, 1.0)
#: Seconds in which the limit is to adapt, and items of each source for each second: more than can be called.
ADAPTS, AHEAD = 10.0, 0.6
STREAM = "calls"


async def downstream(folder: Path, seconds: float, progress: Progress) -> Figures:
    """Runs each part for so many seconds. Measures calls beyond its capacity, the share of the capacity that was used
    once the limit had time to adapt, the seconds that adapting took, and attempts that were spent."""
    path, count = folder / "downstream", int(CAPACITY * AHEAD * seconds * len(PARTS))
    taken = Downstream(path)
    async with EmbeddedStores(folder / "data") as stores:
        for first in range(0, count, 256):
            size = min(256, count - first)
            await stores.queue.submit([NewItem(Kind("call_0", int(DEFAULT_PRIORITY)), b"{}")] * size)
            await stores.log.append(STREAM, 0, [Record(b"{}")] * size)
            progress("filling the sources", first / count)
    place = folder / "in"
    place.mkdir()
    (place / "calls.jsonl").write_bytes(b"{}\n" * count)
    log, files = folder / "log.yaml", folder / "files.yaml"
    log.write_text(f"name: log\nsource: {{kind: log, stream: {STREAM}}}\nfunction: call_1\n")
    files.write_text(
        f"name: files\nsource: {{kind: objects, url: 'file://{place}', format: jsonl}}\nfunction: call_{CALLERS - 1}\n"
    )
    platform = Platform(
        folder / "data",
        [f"{__package__}.downstream_functions"],
        tailers=[log, files],
        environment={"TAILRACE_BENCH_DOWNSTREAM": str(path)},
    )
    taken.begin(CAPACITY)
    began: list[float] = []
    await platform.start()
    try:
        for number, part in enumerate(PARTS):
            taken.change(CAPACITY * part)
            began.append(time.monotonic())
            for second in range(round(seconds)):
                progress(f"a capacity of {CAPACITY * part:.0f} a second", (number + second / seconds) / len(PARTS))
                await asyncio.sleep(began[number] + second + 1 - time.monotonic())
        began.append(time.monotonic())
    finally:
        await platform.stop()
    figures: Figures = {"attempts_spent": float(taken.spent)}
    beyond, used, adapted = [], [], []
    for number, part in enumerate(PARTS):
        capacity, since, until = CAPACITY * part, began[number], began[number + 1]
        steady = taken.seen(since + ADAPTS, until)
        calls, passed = sum(map(sum, steady)), sum(taken for taken, _ in steady)
        beyond.append(100 * (calls / (len(steady) / 10) / capacity - 1))
        used.append(100 * passed / (len(steady) / 10) / capacity)
        adapted.append(adapts(taken.seen(since, until), capacity))
        figures |= {f"beyond_{number}_percent": beyond[-1], f"use_{number}_percent": used[-1]}
        figures |= {f"adapts_{number}_s": adapted[-1], f"throttled_{number}": float(sum(no for _, no in steady))}
    return figures | {
        "held_within_percent": max(0.0, *beyond),
        "use_percent": min(used),
        "adapts_s": max(adapted),
    }


def adapts(tenths: list[tuple[int, int]], capacity: float) -> float:
    """Seconds until the first second from which on the capacity is used to 90 % and called no more than 5 % beyond, on
    average over three seconds."""
    for tenth in range(len(tenths) - 30):
        window = tenths[tenth : tenth + 30]
        calls, passed = sum(map(sum, window)) / 3, sum(taken for taken, _ in window) / 3
        if passed >= 0.9 * capacity and calls <= 1.05 * capacity:
            return tenth / 10
    return len(tenths) / 10
