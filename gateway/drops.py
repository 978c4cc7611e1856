"""What of the streams was passed without being run, for people."""

from __future__ import annotations

from ..sdk.model.errors import InvalidRequest
from ..sdk.wire.drop_messages import drop_to_wire
from ..sdk.wire.v1 import gateway_pb2 as pb
from ..stores.drops.drops import Drops

#: Most ranges in one answer.
MOST = 1000


class DropsDesk:
    """Answers ListDrops. Without a store (a gateway beside no tailers) it refuses."""

    def __init__(self, drops: Drops | None) -> None:
        self._drops = drops

    async def list(self, request: pb.ListDropsRequest) -> pb.ListDropsReply:
        """Ranges of one tailer or of all, by tailer, partition and position."""
        if self._drops is None:
            raise InvalidRequest("this gateway has no store of drops")
        limit = min(request.limit or MOST, MOST)
        rows = await self._drops.list(request.tailer, limit, request.skip)
        return pb.ListDropsReply(rows=[drop_to_wire(row) for row in rows])
