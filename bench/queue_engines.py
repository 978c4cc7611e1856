"""The scenarios `queue`, `latency`, `stream` and others on an engine, with its server, at its usual durability."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ..model.errors import InvalidRequest
from .figures import Figures, Progress
from .postgres_server import PostgresNode, postgres_server
from .redis_server import DURABLE, RedisNode, redis_server
from .scenarios import latency, queue, stream
from .server_node import ServerNode
from .submitting import DOWN, PERIOD, bulk, store_down, submit

#: Durable settings; the append-only file is not rewritten meanwhile, as it would be now and then.
REDIS = (*DURABLE, "--auto-aof-rewrite-min-size", "4gb")
#: Engines on a server, and a function that starts one.
SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "postgres": postgres_server,
    "redis": partial(redis_server, settings=REDIS),
}
#: These engines as nodes of our own, for scenarios that look at their processes.
NODES: dict[str, Callable[[Path], ServerNode]] = {
    "postgres": PostgresNode,
    "redis": partial(RedisNode, settings=REDIS),
}
ENGINES = ("sqlite", *SERVERS)


@contextlib.contextmanager
def configured(folder: Path, engine: str, store: str = "queue") -> Iterator[Path | None]:
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
    """Measures `queue`, with the queue on this engine."""
    with configured(folder, engine) as config:
        return await queue(folder, count, progress, config)


async def submit_on(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    """Measures `submit`, with the queue on this engine."""
    with configured(folder, engine) as config:
        return await submit(folder, count, progress, config)


async def bulk_on(folder: Path, seconds: float, progress: Progress, engine: str) -> Figures:
    """Measures `bulk`, with the queue on this engine."""
    with configured(folder, engine) as config:
        return await bulk(folder, seconds, progress, config)


async def store_down_on(
    folder: Path, count: int, progress: Progress, engine: str, down: float = DOWN, period: float = PERIOD
) -> Figures:
    """Measures `store_down`, with the queue on this engine: one on a server, which may be away alone."""
    if engine not in SERVERS:
        raise InvalidRequest(f"the store is away alone only where it is a server: expected {' or '.join(SERVERS)}")
    with SERVERS[engine](folder / engine) as url:
        parts = urlsplit(url)
        address = f"{parts.hostname}:{parts.port}"

        def stores(through: str) -> str:
            return f'queue: {{engine: {engine}, url: "{url.replace(address, through)}"}}\n'

        return await store_down(folder, count, progress, stores, address, down=down, period=period)


async def latency_on(folder: Path, seconds: float, progress: Progress, engine: str) -> Figures:
    """Measures `latency` of the queue, with the queue on this engine."""
    with configured(folder, engine) as config:
        return await latency(folder, seconds, progress, config)


async def stream_on(folder: Path, count: int, progress: Progress, engine: str) -> Figures:
    """Measures `stream`, with the state on this engine: each checkpoint is a write there."""
    with configured(folder, engine, "state") as config:
        return await stream(folder, count, progress, config)
