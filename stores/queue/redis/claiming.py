"""Claims of a node on Redis, and when it looks for more: at the lanes in which it knows of something due, and about
once a second at those in which others may have made something due, or a lease may have ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ....model.claim import Leased, Settle, State
from ....model.demand import Demand
from ....model.outcome import EXPIRED_WHY
from ..gates import ShutLanes
from ..late_ends import LateEnds
from ..poller import Found, LookResult, Poller
from ..server_clock import JUMP
from .checked_server import CheckedRedis
from .claims import CLAIM, CLAIMED, END_LEASES, LOOK, MORE, QUIET, TASKS
from .lease import RedisClaimPlan, claimed, number_of_kinds, planned
from .script import MOVED

#: Tries of a claim that finds more due than it knew of at each.
TRIES = 3
#: Claims whose leases one step ends: so long is the server held.
CLAIMS = 16

_LOG = logging.getLogger("tailrace.stores")


class RedisClaiming:
    """Claims of one node. `settle` ends what was claimed too late. `share` is what the lowest priority is sure of."""

    def __init__(
        self,
        ground: CheckedRedis,
        poller: Poller,
        share: float,
        settle: Callable[[int, Sequence[str], Sequence[Settle]], Awaitable[list[str]]],
    ) -> None:
        self._ground = ground
        self._home = ground.home
        self._kinds = ground.kinds
        self._clock, self._server_clock = ground.clock, ground.server_clock
        self._poller = poller
        self._share = share
        self._settle = settle
        self._turn = 0  # claims so far
        self.due: set[int] = set()  # lanes that have something due, as far as this process knows
        self._looked = -math.inf  # monotonic, of the last look at what others changed
        self._late_ends = LateEnds()
        self._until = -math.inf  # monotonic; before it nothing that this process knows of is due outside of `due`

    def are_due(self, lanes: Iterable[int]) -> None:
        """Notes lanes in which this process made something due."""
        self.due.update(lanes)

    def changed(self) -> None:
        """Anything may be due anywhere."""
        self._until = -math.inf

    async def look(self, demand: Demand, gates: ShutLanes, seconds: float) -> Found:
        """Claims what is due within the demand; else seconds until something may be. A claim is tried at once where
        something is known to be due: its script finds out what this process did not know of."""
        await self._ground.ready()
        if not self._poller.may_look_at_others(self._looked, self._clock.monotonic()):
            found = await self._claim(demand, gates, seconds, -1.0)
            if not isinstance(found, float) or found >= 0:
                return found
        while True:
            asked, told = self._clock.monotonic(), await self._look_around()
            if isinstance(told, float):
                return told
            moment, later, lease, due = told
            if not lease or float(lease) > moment or not await self.end_leases(moment):
                break
        # What may not end yet is looked at with the next poll.
        ending = float(lease) if lease and float(lease) > moment else math.inf
        await self._told_due(due)
        pause = (min(float(later or math.inf), ending) - moment) / 1e6
        self._until = asked + min(pause, self._poller.own_interval)
        return await self._claim(demand, gates, seconds, pause)

    async def _look_around(self) -> tuple[int, Any, Any, bytes] | float:
        """The server's time, when something more is due, when the first lease ends, and which lanes have something due;
        or seconds for which nothing may be asked."""
        asked = self._clock.monotonic()
        why, *answer = await self._ground.run(LOOK, *self._home.words, about="a look at what is due")
        if why in (MOVED, QUIET):
            return await self._not_now(why, *answer)
        moment, later, lease, due = answer
        self._home.heard()
        self._looked = asked
        if self._ground.time() < 0:
            self._server_clock.told(moment, asked)
        return moment, later, lease, due

    async def end_over(self) -> None:
        """Ends leases that are over though nobody claims: those of a worker that died may be all that there is."""
        await self._ground.ready()
        found = await self._look_around()
        if isinstance(found, float):
            return
        moment, _, lease, due = found
        await self._told_due(due)
        behind = self._late_ends.behind(moment)
        if lease and float(lease) <= moment - behind:
            while await self.end_leases(moment, behind):
                self.changed()

    async def _claim(self, demand: Demand, gates: ShutLanes, seconds: float, pause: float) -> Found:
        for _ in range(TRIES):
            plan = self.plan(demand, gates, seconds)
            if not plan.any:
                return pause
            why, *found = answer = await self._ground.run(CLAIM, *self._home.words, *plan.arguments, about="a claim")
            if why in (MOVED, QUIET):
                return await self._not_now(why, *found)
            await self._told_due(found[-1])
            if why != MORE:
                break
        else:
            return 0.01
        if why != CLAIMED:
            moment, soonest, _ = found
            return min(pause, (float(soonest) - moment) / 1e6) if soonest else pause
        leased = await self._out_by(answer, seconds)
        left = 0.0 if self.due else max(0.0, self._until - self._clock.monotonic())
        return 0.0 if leased is None else LookResult(leased, left)

    def plan(self, demand: Demand, gates: ShutLanes, seconds: float) -> RedisClaimPlan:
        """A claim of what is known to be due."""
        return planned(self._kinds, demand, gates, self.due, seconds, self._share, self._turn)

    async def took(self, answer: Sequence[Any], seconds: float) -> Leased | None:
        """What a claim hands out that a submission took along."""
        await self._told_due(answer[-1])
        return await self._out_by(answer, seconds) if answer[0] == CLAIMED else None

    async def _out_by(self, answer: Sequence[Any], seconds: float) -> Leased | None:
        if any(number not in self._kinds.kinds for number in number_of_kinds(answer[TASKS])):
            await self._kinds.look()
        self._turn += 1
        claim = claimed(self._kinds, answer, seconds)
        self._home.heard(claim.position)
        if claim.unread:
            _LOG.warning("%s: %d workloads could not be read and are left out", self._ground.server.name, claim.unread)
        if claim.expired:
            over = [Settle(id, claim.fence, State.EXPIRED, reason=EXPIRED_WHY) for id in claim.expired]
            await self._settle(claim.fence, [], over)
        return claim.leased

    async def _told_due(self, lanes: bytes) -> None:
        due = {int.from_bytes(lanes[index : index + 4], "big") for index in range(0, len(lanes), 4)}
        if not due <= self._kinds.lanes.keys():
            await self._kinds.look()
        self.due = due

    async def _not_now(self, why: int, moment: int = 0, until: int = 0) -> float:
        if why == QUIET:
            return (until - moment) / 1e6
        await self._ground.look_again()
        return 0.01

    async def end_leases(self, moment: int, behind: int = 0) -> int:
        """Ends those that were over so many µs ago by the server's clock and by ours; how many."""
        if self._ground.time() >= 0:
            latest = moment - behind
        elif self._server_clock.leases_may_end:
            latest = int(self._server_clock.about() + JUMP * 1e6) - behind
        else:
            return 0
        ended, troubles = await self._ground.run(END_LEASES, latest, CLAIMS, about="the end of leases")
        if troubles:
            names = ", ".join(each.decode() for each in troubles)
            _LOG.warning("%s: some leases could not be ended now: %s", self._ground.server.name, names)
        return int(ended)
