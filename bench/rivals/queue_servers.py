"""Servers of queues on which tailrace and its rivals are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ..power_cut import EVERYSEC
from ..queue_engines import NODES
from ..redis_server import RedisNode
from ..server_node import ServerNode, running

SERVERS: dict[str, Callable[[Path], ServerNode]] = {
    **NODES,
    "redis-everysec": partial(RedisNode, settings=EVERYSEC),
}
#: Engines that may lose their last writes, which tailrace's configuration must say.
RELAXED = ("redis-everysec",)


@contextmanager
def server(folder: Path, engine: str) -> Iterator[ServerNode]:
    """An empty server of this engine, for a run in `folder`, which is made."""
    folder.mkdir()
    with running(SERVERS[engine], folder.with_name(f"{folder.name}-server")) as node:
        yield node
