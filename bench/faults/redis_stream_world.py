"""The platform around Redis Streams: three processes share them, a file at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ..redis_server import RedisNode
from .checkpoints_seen import checkpoints
from .fed_streams import Fed
from .known_too_soon import JournaledProgress
from .looks import Connect
from .proxy import FaultProxy
from .redis_fed import RedisFed
from .redis_stream_plan import FILES, SERVER, STREAMS, file_of
from .server_part import OwnServer
from .streams_world import DETACH_AFTER, StreamsWorld

#: Items that a tailer may have handed out at once, over all of its streams.
WINDOW = 60

_TAILER = """\
name: {name}
source:
  kind: redis_stream
  url: redis://{server}/0
  streams: [{streams}]
  payload: {{field: body}}
  connect_timeout: 2s
  timeout: 2s
function: {{header: function}}
window: {{items: {window}, detach_after: {detach_after}}}
"""


class RedisStreamWorld(StreamsWorld):
    """A world around Redis, whose server writes every entry to its disk before it answers."""

    partitions = len(STREAMS)
    #: Items that the tailers may have out at any moment: so many may a fault repeat.
    in_flight = WINDOW * len(FILES)
    looks_called = ("checkpoint_looks", "checkpoints_seen")

    def __init__(self, folder: Path, heartbeat: float) -> None:
        super().__init__(folder, heartbeat)
        self._node = RedisNode(folder / "redis")

    @property
    def nodes(self) -> Mapping[str, OwnServer]:
        return {SERVER: self._node}

    async def serve(self) -> dict[str, str]:
        self._node.start()
        await asyncio.to_thread(self._node.wait)
        proxy = self.wires[f"tailers:{SERVER}"] = FaultProxy(self._node.address)
        await proxy.start()
        return {name: self._file(name, proxy.address) for name in FILES}

    def _file(self, name: str, server: str) -> str:
        mine = [f'"{key}"' for number, key in enumerate(STREAMS) if file_of(number) == name]
        return _TAILER.format(
            name=name, server=server, streams=", ".join(mine), window=WINDOW, detach_after=DETACH_AFTER
        )

    def fed(self) -> Fed:
        places = [f"{file_of(number)}/{key}" for number, key in enumerate(STREAMS)]
        return RedisFed(self._node.url, STREAMS, places)

    def asked(self) -> Connect[JournaledProgress]:
        return partial(checkpoints, self.ports["store"], FILES)
