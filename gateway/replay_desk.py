"""Operators' calls on replays: begin one, see how far they are, pause, resume, cancel."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import InvalidRequest
from ..model.replay import Bound, Progress, ReplayOrder
from ..model.seek import END, START
from ..wire.ports.replays import ReplayView, view_of
from .control import REASON_LENGTH

#: Replays in one answer.
MOST = 200


class ReplayControl(Protocol):
    """Calls on replays. All raise InvalidRequest for what is not there or means nothing."""

    async def order(self, order: ReplayOrder) -> Progress: ...

    async def list(self, limit: int) -> list[Progress]: ...

    async def get(self, number: int) -> Progress: ...

    async def change(self, number: int, what: str) -> Progress: ...


class ReplayDesk:
    """A ReplayPort; without a store of replays it refuses."""

    def __init__(self, replays: ReplayControl | None) -> None:
        self._replays = replays

    def _known(self) -> ReplayControl:
        if self._replays is None:
            raise InvalidRequest("this gateway has no store of replays, so it can neither begin nor show any")
        return self._replays

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Refuses a range without two ends: everything is never meant by default."""
        for option, bound in (("--from", order.begin), ("--to", order.end)):
            if bound == Bound() or (bound.edge and bound.edge not in (START, END)):
                raise InvalidRequest(f"replay {option} where? Expected a position, a time, {START!r} or {END!r}")
        for what, text in (("who", order.who), ("why", order.why)):
            if len(text) > REASON_LENGTH:
                raise InvalidRequest(f"{what} has {len(text)} characters: at most {REASON_LENGTH} are taken")
        return view_of(await self._known().order(order))

    async def replays(self, number: int = 0, limit: int = 100) -> list[ReplayView]:
        """The newest first, or the one of a number."""
        known = self._known()
        found = [await known.get(number)] if number else await known.list(min(limit, MOST) if limit > 0 else MOST)
        return [view_of(each) for each in found]

    async def change_replay(self, number: int, what: str, why: str = "") -> ReplayView:
        """Each is harmless when it is so already."""
        return view_of(await self._known().change(number, what))
