"""The scenario `rivals` with an engine: tailrace's queue and programs that a team would run instead, one after the
other on the same server, which starts empty for each, with the same settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...model.errors import InvalidRequest
from ..figures import Figures, Progress
from ..percentiles import percentile
from ..scenarios import latency, queue
from ..submitting import submit
from .chords import chords
from .queue_servers import RELAXED, server
from .roster import Rival
from .running import feed, pace, waits
from .settings import RivalSettings

#: Parts that are measured when none is named, and all parts.
USUAL = ("drain", "latency")
PARTS = (*USUAL, "chord")
#: Seconds of the measurement of latency.
SECONDS = 10.0
#: The share of the items that tailrace's submissions are measured with, one by one; five times as many at once.
SUBMITTED = 0.05


async def queue_rivals(
    folder: Path,
    count: int,
    progress: Progress,
    engine: str,
    against: Sequence[Rival],
    part: str = "",
    seconds: float = SECONDS,
) -> Figures:
    """`drain`: no-ops enqueued before are run and acknowledged; items a second, submitted and run, and CPU by item, its
    server's apart. `latency`: 200 submissions a second, from each one's call to its start. Each rival has these figures
    too, with tailrace's rate as a multiple of its own, and its CPU, with its server's, as a multiple of tailrace's. A
    slow rival gets fewer items. Both for an empty `part`. `chord`: see `chords.py`. Raises InvalidRequest for an
    unknown part."""
    if part not in ("", *PARTS):
        raise InvalidRequest(f"--part {part}: expected {', '.join(USUAL)} or chord")
    if part == "chord":
        return await chords(folder, count, progress, engine, against)
    parts = (part,) if part else USUAL
    figures: Figures = {}
    if "drain" in parts:
        figures |= await _drained(folder / "drain", count, progress, engine)
    if "latency" in parts:
        figures |= await _waited(folder / "latency", seconds, progress, engine)
    for rival in against:
        items = max(1, int(count * rival.share))
        if "drain" in parts:
            progress(rival.name, 0.0)
            figures |= await _rival_drained(folder / f"{rival.name}-drain", items, engine, rival, figures)
        if "latency" in parts:
            progress(f"{rival.name}, latency", 0.5)
            figures |= await _rival_waited(folder / f"{rival.name}-latency", seconds, engine, rival)
    return figures


def _config(folder: Path, engine: str, url: str) -> Path:
    config = folder / "config"
    config.mkdir()
    durability = "relaxed" if engine in RELAXED else "durable"
    (config / "stores.yaml").write_text(
        f'queue: {{engine: {engine.partition("-")[0]}, url: "{url}"}}\ndurability: {durability}\n'
    )
    return config


async def _drained(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    with server(folder, engine) as node:
        found = await queue(folder, count, progress, _config(folder, engine, node.url), node.pid)
    cpu = {name: value for name, value in found.items() if name.endswith("_cpu_us_per_item")}
    served = cpu.pop("server_cpu_us_per_item")
    apart = folder.with_name(f"{folder.name}-submit")
    with server(apart, engine) as node:
        submitted = await submit(apart, max(1, int(count * SUBMITTED)), progress, _config(apart, engine, node.url))
    return {
        "items_per_s": found["items_per_s"],
        "cpu_us_per_item": sum(cpu.values()),
        "server_cpu_us_per_item": served,
        "submitted_per_s": submitted["many_per_s"],
    }


async def _waited(folder: Path, seconds: float, progress: Progress, engine: str) -> Figures:
    with server(folder, engine) as node:
        found = await latency(folder, seconds, progress, _config(folder, engine, node.url))
    return {figure: found[figure] for figure in ("rate_per_s", "p50_ms", "p99_ms")}


async def _rival_drained(folder: Path, items: int, engine: str, rival: Rival, own: Figures) -> Figures:
    with server(folder, engine) as node:
        settings = RivalSettings(str(folder / "tally"), node.url)
        filling = await feed(rival, settings, "fill", str(items))

        async def told() -> None:
            await feed(rival, settings, "through")

        found = await pace(rival, settings, items, folder / "log", told, node.pid)
    return {
        f"{rival.name}_items_per_s": found.items_per_s,
        f"{rival.name}_cpu_us_per_item": 1e6 * found.cpu_per_item,
        f"{rival.name}_server_cpu_us_per_item": 1e6 * found.server_cpu_per_item,
        f"{rival.name}_submitted_per_s": items / filling,
        f"{rival.name}_ratio": own["items_per_s"] / found.items_per_s,
        f"{rival.name}_cpu_ratio": 1e6
        * (found.cpu_per_item + found.server_cpu_per_item)
        / (own["cpu_us_per_item"] + own["server_cpu_us_per_item"]),
    }


async def _rival_waited(folder: Path, seconds: float, engine: str, rival: Rival) -> Figures:
    with server(folder, engine) as node:
        settings = RivalSettings(str(folder / "tally"), node.url, str(folder / "starts"))
        await feed(rival, settings, "fill")
        rate, found = await waits(rival, settings, seconds, folder / "log")
    return {
        f"{rival.name}_rate_per_s": rate,
        f"{rival.name}_p50_ms": 1e3 * percentile(found, 0.5),
        f"{rival.name}_p99_ms": 1e3 * percentile(found, 0.99),
    }
