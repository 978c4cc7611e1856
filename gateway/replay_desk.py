"""What operators do with replays: begin one, see how far they are, pause, resume, cancel."""

from __future__ import annotations

from typing import Protocol

from ..sdk.model.errors import InvalidRequest
from ..sdk.model.replay import Progress, ReplayOrder
from ..sdk.model.seek import END, START
from ..sdk.wire.replay_messages import order_from_wire, progress_to_wire
from ..sdk.wire.v1 import gateway_pb2 as pb
from .control import REASON_LENGTH

#: Replays in one answer.
MOST = 200


class ReplayControl(Protocol):
    """What can be done with replays. All raise InvalidRequest for what is not there or means nothing."""

    async def order(self, order: ReplayOrder) -> Progress: ...

    async def list(self, limit: int) -> list[Progress]: ...

    async def get(self, number: int) -> Progress: ...

    async def change(self, number: int, what: str) -> Progress: ...


class ReplayDesk:
    """Answers StartReplay, ListReplays and ChangeReplay; without a store of replays it refuses."""

    def __init__(self, replays: ReplayControl | None) -> None:
        self._replays = replays

    def _known(self) -> ReplayControl:
        if self._replays is None:
            raise InvalidRequest("this gateway has no store of replays, so it can neither begin nor show any")
        return self._replays

    async def start(self, request: pb.StartReplayRequest) -> pb.Replay:
        """Refuses a range without two ends: everything is never meant by default."""
        for option, bound in (("--from", request.begin), ("--to", request.end)):
            if bound.WhichOneof("at") is None or (bound.edge and bound.edge not in (START, END)):
                raise InvalidRequest(f"replay {option} where? Expected a position, a time, {START!r} or {END!r}")
        for what, text in (("who", request.who), ("why", request.why)):
            if len(text) > REASON_LENGTH:
                raise InvalidRequest(f"{what} has {len(text)} characters: at most {REASON_LENGTH} are taken")
        return progress_to_wire(await self._known().order(order_from_wire(request)))

    async def list(self, request: pb.ListReplaysRequest) -> pb.ListReplaysReply:
        """The newest first, or the one of a number."""
        known = self._known()
        found = (
            [await known.get(request.number)] if request.number else await known.list(min(request.limit or MOST, MOST))
        )
        return pb.ListReplaysReply(replays=[progress_to_wire(each) for each in found])

    async def change(self, request: pb.ChangeReplayRequest) -> pb.Replay:
        """Each is harmless when it is so already."""
        return progress_to_wire(await self._known().change(request.number, request.what))
