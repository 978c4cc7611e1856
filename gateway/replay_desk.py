"""The desk for replays: starts and shows them, pauses, resumes and cancels them."""

from __future__ import annotations

from typing import Protocol

from ..model.errors import InvalidRequest
from ..model.replay import Bound, Progress, ReplayOrder
from ..model.seek import END, START
from ..wire.ports.replays import ReplayView, view_of
from .control import REASON_LENGTH

#: Most replays in one answer.
MOST = 200


class ReplayControl(Protocol):
    """The replays behind the desk. Every method raises InvalidRequest for an unknown replay or an order without
    sense."""

    async def order(self, order: ReplayOrder) -> Progress: ...

    async def list(self, limit: int) -> list[Progress]: ...

    async def get(self, number: int) -> Progress: ...

    async def change(self, number: int, what: str) -> Progress: ...


class ReplayDesk:
    """Answers calls about replays (a ReplayPort); without a store of replays it refuses."""

    def __init__(self, replays: ReplayControl | None) -> None:
        self._replays = replays

    def _known(self) -> ReplayControl:
        if self._replays is None:
            raise InvalidRequest("this gateway has no store of replays: ask a gateway that has one")
        return self._replays

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Starts a replay, or shows the one that would be started. Raises InvalidRequest for a range without two
        ends."""
        for option, bound in (("--from", order.begin), ("--to", order.end)):
            if bound == Bound() or (bound.edge and bound.edge not in (START, END)):
                raise InvalidRequest(f"{option} is missing or wrong: expected a position, a time, {START!r} or {END!r}")
        for what, text in (("who", order.who), ("why", order.why)):
            if len(text) > REASON_LENGTH:
                raise InvalidRequest(f"{what} has {len(text)} characters: at most {REASON_LENGTH} are taken")
        return view_of(await self._known().order(order))

    async def replays(self, number: int = 0, limit: int = 100) -> list[ReplayView]:
        """Replays, the newest first, or the one of this number."""
        known = self._known()
        found = [await known.get(number)] if number else await known.list(min(limit, MOST) if limit > 0 else MOST)
        return [view_of(each) for each in found]

    async def change_replay(self, number: int, what: str, why: str = "") -> ReplayView:
        """Pauses, resumes or cancels a replay. Each is harmless when it is so already."""
        return view_of(await self._known().change(number, what))
