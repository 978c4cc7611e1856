"""The scenarios `queue`, `latency` and `stream` on an engine: the server included, durable as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ..sdk.model.errors import InvalidRequest
from .postgres_server import postgres_server
from .redis_server import redis_server
from .scenarios import Figures, Progress, latency, queue, stream

#: Engines that rest on a server, and how one is to be had.
SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {"postgres": postgres_server, "redis": redis_server}
ENGINES = ("sqlite", *SERVERS)


@contextlib.contextmanager
def _configured(folder: Path, engine: str, store: str = "queue") -> Iterator[Path | None]:
    """A configuration whose queue, or state, is on this engine; None: the embedded one."""
    if engine not in ENGINES:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    if engine not in SERVERS:
        yield None
        return
    config = folder / "config"
    config.mkdir()
    with SERVERS[engine](folder / engine) as url:
        (config / "stores.yaml").write_text(f'{store}: {{engine: {engine}, url: "{url}"}}\n')
        yield config


async def queue_on(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    """What `queue` measures, with the queue on this engine."""
    with _configured(folder, engine) as config:
        return await queue(folder, count, progress, config)


async def latency_on(folder: Path, seconds: float, progress: Progress, engine: str) -> Figures:
    """What `latency` measures of the queue, with the queue on this engine."""
    with _configured(folder, engine) as config:
        return await latency(folder, seconds, progress, config)


async def stream_on(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    """What `stream` measures, with the state on this engine: each checkpoint is a write there."""
    with _configured(folder, engine, "state") as config:
        return await stream(folder, count, progress, config)
