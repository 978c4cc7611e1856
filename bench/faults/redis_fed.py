"""Redis Streams as a run's own writer fills them: one XADD for each record, as any application would."""

from __future__ import annotations

from collections.abc import Sequence

from ...stores.log.log import Record
from ...stores.redis.options import RedisOptions
from ...stores.redis.server import RedisServer
from ...tailers.sources.redis_entries import facts_of, id_of, position_of
from .fed_streams import PAGE, FedPage

#: Seconds until an answer that did not come is given up.
WITHIN = 5.0


class RedisFed:
    """Streams of Redis that are fed. `streams` are their keys; the field `body` has the payload, and each header is a
    field."""

    def __init__(self, url: str, streams: Sequence[str], places: Sequence[str]) -> None:
        self.places = places
        self._streams = streams
        self._server = RedisServer(RedisOptions.model_validate({"url": url, "timeout": WITHIN}), 1.0)

    async def create(self) -> None:
        """Does nothing: the first record makes a stream."""

    async def append(self, stream: int, records: Sequence[Record]) -> Sequence[int]:
        key = self._streams[stream]
        fields = [[part for pair in record.headers for part in pair] for record in records]
        commands = [
            ("XADD", key, "*", *each, "body", record.payload) for each, record in zip(fields, records, strict=True)
        ]
        return [position_of(id, key) for id in await self._server.calls(commands, f"stream {key!r}")]

    async def ends(self) -> dict[int, int]:
        found = {}
        for stream, key in enumerate(self._streams):
            answer = await self._server.call("XINFO", "STREAM", key, about=f"stream {key!r}", none_if="no such key")
            found[stream] = facts_of(answer, key).last + 1
        return {stream: end for stream, end in found.items() if end}

    async def page(self, stream: int, position: int) -> FedPage:
        key = self._streams[stream]
        rows = await self._server.call("XRANGE", key, id_of(position), "+", "COUNT", PAGE, about=f"stream {key!r}")
        payloads = [dict(zip(fields[::2], fields[1::2], strict=True))[b"body"] for _, fields in rows]
        return FedPage([position_of(id, key) for id, _ in rows], payloads)

    async def close(self) -> None:
        await self._server.close()
