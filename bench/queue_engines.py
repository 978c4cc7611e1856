"""The scenario `queue` on an engine: the server included, durable as it comes."""

from __future__ import annotations

from pathlib import Path

from ..sdk.model.errors import InvalidRequest
from .postgres_server import postgres_server
from .scenarios import Figures, Progress, queue

ENGINES = ("sqlite", "postgres")


async def queue_on(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    """What `queue` measures, with the queue on this engine."""
    if engine == "sqlite":
        return await queue(folder, count, progress)
    if engine != "postgres":
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    config = folder / "config"
    config.mkdir()
    with postgres_server(folder / "postgres") as url:
        (config / "stores.yaml").write_text(f'queue: {{engine: postgres, url: "{url}"}}\n')
        return await queue(folder, count, progress, config)
