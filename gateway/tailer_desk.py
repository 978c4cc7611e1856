"""What operators do to tailers: pause, resume, move a checkpoint."""

from __future__ import annotations

from typing import Protocol

from ..sdk.model.errors import InvalidRequest
from ..sdk.model.seek import END, START, Move, Seek
from ..sdk.wire.seek_messages import moves_to_wire, seek_from_wire
from ..sdk.wire.v1 import gateway_pb2 as pb


class TailerControl(Protocol):
    """The tailers beside a gateway. Both raise InvalidRequest for an unknown one."""

    def set_paused(self, name: str, paused: bool) -> None: ...

    async def seek(self, seek: Seek) -> list[Move]: ...


class TailerDesk:
    """Answers PauseTailer and SeekTailer; without tailers beside this gateway it refuses."""

    def __init__(self, tailers: TailerControl | None) -> None:
        self._tailers = tailers

    def _known(self, name: str) -> TailerControl:
        if self._tailers is None:
            raise InvalidRequest(f"this gateway has no tailers beside it, so it cannot reach {name!r}")
        return self._tailers

    async def pause(self, request: pb.PauseTailerRequest) -> pb.PauseTailerReply:
        """Until the tailer's process ends."""
        self._known(request.tailer).set_paused(request.tailer, request.paused)
        return pb.PauseTailerReply()

    async def seek(self, request: pb.SeekTailerRequest) -> pb.SeekTailerReply:
        """Nothing is passed without somebody's word."""
        seek = seek_from_wire(request)
        if request.WhichOneof("to") is None or (seek.edge and seek.edge not in (START, END)):
            raise InvalidRequest(f"seek {seek.tailer!r} to where? Expected a position, a time, {START!r} or {END!r}")
        if not seek.dry_run and not seek.why.strip():
            raise InvalidRequest("a seek passes items without running them: say why (--why), or look with --dry-run")
        return moves_to_wire(await self._known(seek.tailer).seek(seek))
