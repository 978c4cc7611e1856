"""Claims of a node on Redis, and when it looks for more: in the lanes that it knows to have due items, and about once a
second in those in which other nodes may have made items due, or a lease may have ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ....model.claim import Leased, Settle, State
from ....model.demand import Demand
from ....model.outcome import EXPIRED_WHY
from ..gates import ShutLanes
from ..poller import Found, LookResult, Poller
from ..server_clock import JUMP
from ..sweep_grace import SweepGrace
from .checked_server import CheckedRedis
from .claim_plan import RedisClaimPlan, claimed, number_of_kinds, planned
from .claims import CLAIM, CLAIMED, END_LEASES, LOOK, MORE, QUIET, TASKS
from .script import MOVED

#: Most tries of a claim that finds further due lanes at each.
TRIES = 3
#: Most claims whose leases one step ends: it blocks the server meanwhile.
CLAIMS = 16

_LOG = logging.getLogger("tailrace.stores")


class RedisClaiming:
    """Claims of one node. `settle` ends items that were claimed too late. `share`: the guaranteed share of lower
    priorities."""

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
        self.due: set[int] = set()  # lanes that have due items, as far as this process knows
        self._looked = -math.inf  # monotonic, of the last look at changes of other nodes
        self._sweep_grace = SweepGrace()
        self._until = -math.inf  # monotonic; before it no lane outside of `due` has due items, as far as is known

    def are_due(self, lanes: Iterable[int]) -> None:
        """Notes lanes in which this process made items due."""
        self.due.update(lanes)

    def changed(self) -> None:
        """Notes that anything may be due anywhere."""
        self._until = -math.inf

    async def look(self, demand: Demand, gates: ShutLanes, seconds: float) -> Found:
        """Claims due items within the demand; if there are none, returns the seconds until some may be due. If lanes
        with due items are known, claims at once: the claim's script finds lanes that this process did not know of."""
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
        # A lease that may not end yet is left to the next poll.
        ending = float(lease) if lease and float(lease) > moment else math.inf
        await self._told_due(due)
        pause = (min(float(later or math.inf), ending) - moment) / 1e6
        self._until = asked + min(pause, self._poller.own_interval)
        return await self._claim(demand, gates, seconds, pause)

    async def _look_around(self) -> tuple[int, Any, Any, bytes] | float:
        """Returns the server's time, when the next item is due, when the first lease ends, and the lanes that have due
        items; or the seconds for which nothing may be asked."""
        asked = self._clock.monotonic()
        why, *answer = await self._ground.run(LOOK, *self._home.words, about="a look for due workloads")
        if why in (MOVED, QUIET):
            return await self._not_now(why, *answer)
        moment, later, lease, due = answer
        self._home.heard()
        self._looked = asked
        if self._ground.time() < 0:
            self._server_clock.told(moment, asked)
        return moment, later, lease, due

    async def end_over(self) -> None:
        """Ends leases that are over even if nobody claims: all items may have been with a worker that died."""
        await self._ground.ready()
        found = await self._look_around()
        if isinstance(found, float):
            return
        moment, _, lease, due = found
        await self._told_due(due)
        behind = self._sweep_grace.micros(moment)
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
        leased = await self._handed_out(answer, seconds)
        left = 0.0 if self.due else max(0.0, self._until - self._clock.monotonic())
        return 0.0 if leased is None else LookResult(leased, left)

    def plan(self, demand: Demand, gates: ShutLanes, seconds: float) -> RedisClaimPlan:
        """Plans a claim of the items that are known to be due."""
        return planned(self._kinds, demand, gates, self.due, seconds, self._share, self._turn)

    async def took(self, answer: Sequence[Any], seconds: float) -> Leased | None:
        """The items that a claim made together with a submission hands out."""
        await self._told_due(answer[-1])
        return await self._handed_out(answer, seconds) if answer[0] == CLAIMED else None

    async def _handed_out(self, answer: Sequence[Any], seconds: float) -> Leased | None:
        if any(number not in self._kinds.kinds for number in number_of_kinds(answer[TASKS])):
            await self._kinds.look()
        self._turn += 1
        claim = claimed(self._kinds, answer, seconds)
        self._home.heard(claim.position)
        if claim.unread:
            _LOG.warning("%s: %d workloads cannot be read and are left out", self._ground.server.name, claim.unread)
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
        """Ends leases that have been over for `behind` µs, both by the server's clock and by ours; returns how many."""
        if self._ground.time() >= 0:
            latest = moment - behind
        elif self._server_clock.leases_may_end:
            latest = int(self._server_clock.about() + JUMP * 1e6) - behind
        else:
            return 0
        ended, troubles = await self._ground.run(END_LEASES, latest, CLAIMS, about="the end of leases")
        if troubles:
            names = ", ".join(each.decode() for each in troubles)
            _LOG.warning("%s: some leases cannot be ended now: %s", self._ground.server.name, names)
        return int(ended)
