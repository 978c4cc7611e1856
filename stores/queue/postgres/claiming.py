"""Claims of a node on PostgreSQL, and when it looks for more: where it knows that nothing is due it asks nothing, and
about once a second it looks at what others may have made due and at leases that may have ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ....model.claim import Leased, Settle, State
from ....model.demand import Demand
from ....model.outcome import EXPIRED_WHY
from ...postgres.arrays import numbers
from ..claims_beside import BesideSubmissions
from ..gates import ShutLanes
from ..hand_over import Taker
from ..ids import id_text
from ..late_ends import LateEnds
from ..poller import Found, LookResult, Poller
from . import statements as call
from .bounds import LookBounds
from .checked_server import CheckedPostgres
from .claims import ClaimsOut
from .collect import PostgresCollecting
from .lanes_with_work import LanesWithWork
from .lease import claimed, open_lanes, planned
from .nothing_due import NothingDue, Scope
from .rows import BLOCKED

ClaimedRows = Sequence[tuple[Any, ...]]

#: Seconds until the index of turns is asked for again where it could not be made.
TURNS_AGAIN = 60.0

_LOG = logging.getLogger("tailrace.stores")


class PostgresClaiming:
    """Claims of one node. `out` is told what is handed out, `settle` ends what was claimed too late. `tell` hints to
    the other nodes when the `outbox` brought something. `share` is what the lowest priority is sure of."""

    def __init__(
        self,
        ground: CheckedPostgres,
        poller: Poller,
        share: float,
        out: ClaimsOut,
        outbox: PostgresCollecting,
        tell: Callable[[], None],
        settle: Callable[[int, Sequence[str], Sequence[Settle]], Awaitable[list[str]]],
    ) -> None:
        self._ground = ground
        self._home = ground.home
        self._kinds = ground.kinds
        self._clock, self._server_clock = ground.clock, ground.server_clock
        self._poller = poller
        self._share = share
        self._out = out
        self._outbox = outbox
        self._tell = tell
        self._settle = settle
        self._beside = BesideSubmissions()
        self._bounds, self._dry, self._stocked = LookBounds(), NothingDue(), LanesWithWork()
        self._turn = 0  # claims so far
        self._turns: dict[int, int] = {}  # lane → the kind whose turn was last
        self._takes_turns = False  # the index that turns need is there
        self._asked_turns = -math.inf  # monotonic, when that was asked last
        self._looked = -math.inf  # monotonic, of the last look at what others changed
        self._late_ends = LateEnds()
        self._changes = 1  # times that something may have been stored in lanes that are not known
        self._seen = 0  # … when they were looked for last
        self._soonest = 0  # µs, when a lease may end that this process knows of

    def changed(self) -> None:
        """Anything may be due anywhere."""
        self._bounds.forget()
        self._dry.forget()
        self._changes += 1

    def hinted(self) -> None:
        """Another node changed something. Who is busy looks at what it stored, and finds the rest at the next poll."""
        if self._poller.waiting:
            self._looked = -math.inf
        self._dry.forget()
        self._changes += 1

    def collected(self) -> None:
        """Something came out of the outbox: it may be of a new kind."""
        self._looked = -math.inf

    def submitted(self, priorities: Iterable[int]) -> None:
        """Notes that this process is asked to store something of these priorities."""
        self._beside.submitted(priorities, self._clock.monotonic())

    def put(self, moments: Sequence[tuple[int, int]], due: dict[int, int]) -> None:
        """Notes items that this process stored and that wait: of each the lane and when it is due (µs); `due`: those
        that are due, id → lane."""
        self._stocked.put(lane for lane, _ in moments)
        self._bounds.sooner(moments)
        self._dry.put(due)

    def stored(self, lanes: Iterable[int], moment: int) -> None:
        """Items were stored in these lanes in the transaction of something else, due since that moment (µs)."""
        self.put([(lane, moment) for lane in lanes], {})
        self._dry.forget()

    async def look(self, demand: Demand, gates: ShutLanes, seconds: float) -> Found:
        """Claims what is due within the demand; else seconds until something may be."""
        await self._look_at_others()
        if demand.total <= 0:
            return math.inf
        scope = Scope(frozenset(cell for cell, most in demand.cells.items() if most > 0), demand.closed)
        while True:
            now = self._clock.monotonic()
            lanes, shut, partly = open_lanes(self._kinds, self._stocked.lanes, demand, gates)
            await self._see_to_turns(lanes, shut, now)
            ready = fresh = self._dry.fresh(scope, lanes, now)
            if fresh:
                break
            self._dry.looking()
            look = self._stocked.looking()
            others, found = await self._look_into(lanes, shut, partly)
            if others:  # what they have is known with the next look
                continue
            moment = int(found[0][call.LOOKED_AT] if found else self._ground.time() or self._server_clock.about())
            ready = [lane for lane, earliest, _ in found if earliest is not None and earliest <= moment]
            for lane, earliest, _ in found:
                if lane in partly:
                    continue
                if not shut:
                    self._bounds.found(lane, moment if earliest is None else min(earliest, moment))
                if earliest is None:
                    self._stocked.empty(lane, look)
            if ready:
                break
            next_due = min((each for _, each, _ in found if each is not None), default=BLOCKED)
            pause = float(min(next_due, self._soonest) - moment) / 1e6
            self._dry.found(scope, now + min(pause, self._poller.own_interval))
            return pause
        found = await self._ground.rows(call.CLAIM, self.arguments(demand, ready, shut, seconds), "a claim")
        rows = self.turned(found)
        if found and not rows:  # others were quicker
            self.changed()
            return 0.01
        if not rows:  # others were quicker, or this is another server than it was
            [(timeline,)] = await self._ground.read(call.TIMELINE, (), "its timeline")
            if timeline != self._home.timeline:  # a pooler keeps connections through a failover: look where they lead
                await self._ground.server.dial_anew()
                await self._kinds.look()
                self._takes_turns, self._asked_turns = False, -math.inf
            self.changed()
            return 0.01
        leased = await self.out_by(rows, seconds)
        self._dry.claimed(row[call.ID] for row in rows)
        return LookResult(leased, self._dry.left(self._clock.monotonic()) if fresh else 0.0) if leased else 0.0

    async def _look_into(self, lanes: Sequence[int], shut: Sequence[int], partly: set[int]) -> tuple[bool, ClaimedRows]:
        """Of these lanes what is due first, after its bound. First, whether something waits in lanes that were not
        known, and are from now on: looked for where somebody may have stored it since, for the steps between the lanes
        also pass what has ended and was not swept out of the index yet."""
        changes = self._changes
        around = changes != self._seen
        if not lanes and not around:
            return False, []
        gates = "{" + ",".join("t" if lane in partly else "f" for lane in lanes) + "}"
        arguments = (self._ground.time(), numbers(lanes), numbers(map(self._bounds.of, lanes)), numbers(shut), gates)
        if not around:
            return False, await self._ground.rows(call.LOOK, arguments, "a look at what is due")
        known = numbers(self._stocked.lanes)
        rows = await self._ground.rows(call.LOOK_AROUND, (*arguments, known), "a look at what is due")
        if new := [lane for lane, _, moment in rows if moment is None]:
            await self._learn(new)
            self._stocked.put(new)
        self._seen = changes
        return bool(new), [row for row in rows if row[call.LOOKED_AT] is not None]

    async def _see_to_turns(self, lanes: Sequence[int], shut: Sequence[int], now: float) -> None:
        """Where somebody takes turns in these lanes their index is made. Where it cannot be now, they are claimed by
        time."""
        if self._takes_turns or not (shut or any(self._kinds.sizes[lane] > 1 for lane in lanes)):
            return
        if now - self._asked_turns >= TURNS_AGAIN:
            self._asked_turns = now
            [(self._takes_turns,)] = await self._ground.rows(call.TURNS, (), "the index of turns")
            if not self._takes_turns:
                _LOG.warning(
                    "%s: the index of turns cannot be made now, so tenants take no turns; trying again in %.0f s",
                    self._ground.server.name,
                    TURNS_AGAIN,
                )

    async def _learn(self, lanes: Iterable[int]) -> None:
        if any(lane not in self._kinds.lanes for lane in lanes):
            await self._kinds.look()

    def arguments(self, demand: Demand, lanes: Sequence[int], shut: Sequence[int], seconds: float) -> tuple[Any, ...]:
        turns = self._turns if self._takes_turns else None
        most = self._beside.most((self._kinds.lanes[lane][1] for lane in lanes), self._clock.monotonic())
        plan = planned(self._kinds, demand, lanes, shut, self._bounds, turns, self._share, self._turn, most)
        return (self._ground.time(), *plan, int(seconds * 1e6), self._home.timeline)

    def arguments_of(self, taker: Taker, lanes: Iterable[int]) -> tuple[Any, ...]:
        """The arguments of a claim that a submission to these lanes takes along."""
        return self.arguments(
            taker.demand, *open_lanes(self._kinds, lanes, taker.demand, taker.gates)[:2], taker.seconds
        )

    def turned(self, rows: ClaimedRows) -> ClaimedRows:
        """The items of a claim's rows. The others say whose turn was last."""
        for row in rows:
            if row[call.ID] == call.NO_ITEM:
                self._turns[row[call.ATTEMPTS]] = row[call.KIND]
        return [row for row in rows if row[call.ID] != call.NO_ITEM]

    async def out_by(self, rows: ClaimedRows, seconds: float) -> Leased | None:
        """What the rows of a claim hand out."""
        self._turn += 1
        if any(row[call.KIND] not in self._kinds.kinds for row in rows):
            await self._kinds.look()
        taken = claimed(self._kinds, rows, seconds)
        fence = rows[0][call.FENCE]
        self._out.claimed(taken.number, fence, taken.ids)
        self._soonest = min(self._soonest, taken.moment + int(seconds * 1e6))
        if taken.expired:
            over = [Settle(id_text(number), fence, State.EXPIRED, reason=EXPIRED_WHY) for number in taken.expired]
            await self._settle(fence, [], over)
        return taken.leased

    async def _look_at_others(self) -> bool:
        """Now and then: new kinds, leases that ended, and what others made due earlier; whether it did."""
        now = self._clock.monotonic()
        moment = self._ground.time() or self._server_clock.about()
        if not self._poller.may_look_at_others(self._looked, now) and moment < self._soonest:
            return False
        self._looked = now
        self._dry.forget()
        if settled := self._home.settled_in:
            await self._ground.rows("UPDATE S.home SET known = %s", (settled,), "its home")
            self._home.known()
        moved = await self._outbox.collect()
        await self._kinds.look()
        self._bounds.forget()
        self._soonest = await self._end_leases()
        look, changes = self._stocked.looking(), self._changes
        stocked = [lane for (lane,) in await self._ground.rows(call.STOCKED, ("{}",), "a look at what waits")]
        await self._learn(stocked)
        self._stocked.found(stocked, look)
        self._seen = changes
        if moved:  # there may be more
            self._looked = -math.inf
            self._tell()
        return True

    async def end_over(self) -> None:
        """Ends leases that are over though nobody claims: those of a worker that died may be all that there is."""
        self._soonest = await self._end_leases(self._late_ends)

    async def _end_leases(self, late: LateEnds | None = None) -> int:
        """Ends those that are over. Until when the next one runs (the server's time); BLOCKED: the next poll sees it.
        How late it is is heard first, so that a clock that was set forward ends none, and they end by that time."""
        asked, about = self._clock.monotonic(), "the end of leases"
        given = self._ground.time()
        [(moment, soonest, _, _)] = await self._ground.rows(call.END_LEASES, (given, False), about)
        if given is None:
            self._server_clock.told(moment, asked)
        latest = moment if late is None else moment - late.behind(moment)
        if soonest is not None and soonest <= latest and self._server_clock.leases_may_end:
            [(_, soonest, ended, troubles)] = await self._ground.rows(call.END_LEASES, (latest, True), about)
            if troubles:
                _LOG.warning("%s: some leases could not be ended now: %s", self._ground.server.name, troubles)
            if ended:
                self.changed()
            if ended and soonest is not None:  # there may be more that are over
                return int(soonest)
        # What somebody else holds, or what may not end yet, is over already.
        return BLOCKED if soonest is None or soonest <= moment else int(soonest)
