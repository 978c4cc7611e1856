"""What rests where, and the dead letters: for live views and for people who look into what went wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..sdk.model.errors import InvalidRequest
from ..sdk.model.overview import Overview
from ..sdk.wire.gateway_messages import dead_letter_to_wire, overview_to_wire
from ..sdk.wire.v1 import gateway_pb2 as pb
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.queue.queue import Queue

#: Dead letters of one answer, unless asked for fewer; and the most that may be asked for.
USUAL_LETTERS = 100
MOST_LETTERS = 1000


async def no_parts() -> Overview:
    """For a gateway that knows of no tailers and no delay streams."""
    return Overview()


class OverviewDesk:
    """Answers Overview and ListDead. `parts` tells of the tailers and delay streams; the stores are counted here."""

    def __init__(self, queue: Queue, dead_letters: DeadLetters, parts: Callable[[], Awaitable[Overview]]) -> None:
        self._queue = queue
        self._dead_letters = dead_letters
        self._parts = parts

    async def overview(self, request: pb.OverviewRequest) -> pb.OverviewReply:
        """Everything now."""
        whole = replace(
            await self._parts(), queue=await self._queue.counts(), dead_letters=await self._dead_letters.count()
        )
        return overview_to_wire(whole)

    async def list_dead(self, request: pb.ListDeadRequest) -> pb.ListDeadReply:
        """Dead letters of a function or of all, oldest first; or one of them with its payload."""
        total = await self._dead_letters.count()
        if request.id:
            letter = await self._dead_letters.get(request.id)
            return pb.ListDeadReply(letters=[] if letter is None else [dead_letter_to_wire(letter)], total=total)
        limit = request.limit or USUAL_LETTERS
        if limit > MOST_LETTERS:
            raise InvalidRequest(f"limit is {limit}: at most {MOST_LETTERS} dead letters are listed at once")
        letters = await self._dead_letters.list(request.function, limit, request.after)
        return pb.ListDeadReply(letters=[dead_letter_to_wire(letter) for letter in letters], total=total)
