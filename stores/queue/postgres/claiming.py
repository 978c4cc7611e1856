"""Claims of a node on PostgreSQL, and when it looks for more. While it knows that nothing is due it asks nothing; about
once a second it looks for items that other nodes made due, and for leases that may have ended."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ....model.claim import Leased, Settle, State
from ....model.demand import Demand
from ....model.outcome import EXPIRED_WHY
from ....model.redrive import ORIGIN
from ....model.workload import Extra
from ...postgres.arrays import numbers
from ..claim_sizes import ClaimSizes
from ..gates import ShutLanes
from ..hand_over import Taker
from ..ids import id_number, id_text
from ..poller import Found, LookResult, Poller
from ..sweep_grace import SweepGrace
from . import statements as call
from .bounds import LookBounds
from .checked_server import CheckedPostgres
from .claim_plan import claimed, open_lanes, planned
from .claims import ClaimsOut
from .collect import PostgresCollecting
from .lanes_with_work import LanesWithWork
from .nothing_due import NothingDue, Scope
from .rows import BLOCKED

ClaimedRows = Sequence[tuple[Any, ...]]

#: Seconds until the index of turns is asked for again where it could not be made.
TURNS_AGAIN = 60.0

_LOG = logging.getLogger("tailrace.stores")


class PostgresClaiming:
    """Claims of one node. `out` notes the items that are handed out. `settle` ends items that were claimed too late.
    `tell` sends a hint to the other nodes after the `outbox` brought items. `share`: the guaranteed share of lower
    priorities."""

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
        self._sizes = ClaimSizes()
        self._bounds, self._dry, self._stocked = LookBounds(), NothingDue(), LanesWithWork()
        self._turn = 0  # claims so far
        self._turns: dict[int, int] = {}  # lane → the kind whose turn was last
        self._takes_turns = False  # the index that turns need exists
        self._asked_turns = -math.inf  # monotonic, when the index was last asked for
        self._looked = -math.inf  # monotonic, of the last look at changes of other nodes
        self._sweep_grace = SweepGrace()
        self._changes = 1  # times that an item may have been stored in a lane that is not known
        self._seen = 0  # … at the last look for such lanes
        self._soonest = 0  # µs, earliest end of a lease that this process knows of

    def changed(self) -> None:
        """Forgets all: anything may be due anywhere."""
        self._bounds.forget()
        self._dry.forget()
        self._changes += 1

    def hinted(self) -> None:
        """Notes that another node changed something. A busy process goes on with the items that it stored itself, and
        finds the others at the next poll."""
        if self._poller.waiting:
            self._looked = -math.inf
        self._dry.forget()
        self._changes += 1

    def collected(self) -> None:
        """Notes that items came out of the outbox: they may be of a new kind."""
        self._looked = -math.inf

    def submitted(self, priorities: Iterable[int]) -> None:
        """Notes that items of these priorities are being submitted to this process."""
        self._sizes.submitted(priorities, self._clock.monotonic())

    def put(self, moments: Sequence[tuple[int, int]], due: dict[int, int]) -> None:
        """Notes items that this process stored and that wait. `moments`: lane and due time (µs) of each; `due`: the
        items that are due now, id → lane."""
        self._stocked.put(lane for lane, _ in moments)
        self._bounds.sooner(moments)
        self._dry.put(due)

    def stored(self, lanes: Iterable[int], moment: int) -> None:
        """Notes that another operation's transaction stored items in these lanes, due since that moment (µs)."""
        self.put([(lane, moment) for lane in lanes], {})
        self._dry.forget()

    async def look(self, demand: Demand, gates: ShutLanes, seconds: float) -> Found:
        """Claims due items within the demand; if there are none, returns the seconds until some may be due."""
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
            if others:  # the next look covers the lanes that were found
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
            [(timeline,)] = await self._ground.read(call.TIMELINE, (), "the server's timeline")
            if timeline != self._home.timeline:  # a pooler keeps connections through a failover: dial again
                await self._ground.server.dial_anew()
                await self._kinds.look()
                self._takes_turns, self._asked_turns = False, -math.inf
            self.changed()
            return 0.01
        leased = await self.handed_out(rows, seconds)
        self._dry.claimed(row[call.ID] for row in rows)
        return LookResult(leased, self._dry.left(self._clock.monotonic()) if fresh else 0.0) if leased else 0.0

    async def _look_into(self, lanes: Sequence[int], shut: Sequence[int], partly: set[int]) -> tuple[bool, ClaimedRows]:
        """Returns the earliest due time in each of these lanes, after its bound. The first value is True if items wait
        in lanes that were not known; these are known from now on. Such lanes are looked for only after a change that
        may have filled one, because the steps from lane to lane also pass ended items that are still in the index."""
        changes = self._changes
        around = changes != self._seen
        if not lanes and not around:
            return False, []
        gates = "{" + ",".join("t" if lane in partly else "f" for lane in lanes) + "}"
        arguments = (self._ground.time(), numbers(lanes), numbers(map(self._bounds.of, lanes)), numbers(shut), gates)
        if not around:
            return False, await self._ground.rows(call.LOOK, arguments, "a look for due workloads")
        known = numbers(self._stocked.lanes)
        rows = await self._ground.rows(call.LOOK_AROUND, (*arguments, known), "a look for due workloads")
        if new := [lane for lane, _, moment in rows if moment is None]:
            await self._learn(new)
            self._stocked.put(new)
        self._seen = changes
        return bool(new), [row for row in rows if row[call.LOOKED_AT] is not None]

    async def _see_to_turns(self, lanes: Sequence[int], shut: Sequence[int], now: float) -> None:
        """Makes the index of turns if several tenants use these lanes. If it cannot be made now, their items are
        claimed by time."""
        if self._takes_turns or not (shut or any(self._kinds.sizes[lane] > 1 for lane in lanes)):
            return
        if now - self._asked_turns >= TURNS_AGAIN:
            self._asked_turns = now
            [(self._takes_turns,)] = await self._ground.rows(call.TURNS, (), "the index of turns")
            if not self._takes_turns:
                _LOG.warning(
                    "%s: the index for fair turns of tenants cannot be made now: workloads go by time; trying again in "
                    "%.0f s",
                    self._ground.server.name,
                    TURNS_AGAIN,
                )

    async def _learn(self, lanes: Iterable[int]) -> None:
        if any(lane not in self._kinds.lanes for lane in lanes):
            await self._kinds.look()

    def arguments(self, demand: Demand, lanes: Sequence[int], shut: Sequence[int], seconds: float) -> tuple[Any, ...]:
        turns = self._turns if self._takes_turns else None
        most = self._sizes.most((self._kinds.lanes[lane][1] for lane in lanes), self._clock.monotonic())
        plan = planned(self._kinds, demand, lanes, shut, self._bounds, turns, self._share, self._turn, most)
        return (self._ground.time(), *plan, int(seconds * 1e6), self._home.timeline)

    def arguments_of(self, taker: Taker, lanes: Iterable[int]) -> tuple[Any, ...]:
        """The arguments of a claim made together with a submission to these lanes."""
        return self.arguments(
            taker.demand, *open_lanes(self._kinds, lanes, taker.demand, taker.gates)[:2], taker.seconds
        )

    def turned(self, rows: ClaimedRows) -> ClaimedRows:
        """Returns the items among a claim's rows. The other rows tell whose turn was last, which is noted."""
        for row in rows:
            if row[call.ID] == call.NO_ITEM:
                self._turns[row[call.ATTEMPTS]] = row[call.KIND]
        return [row for row in rows if row[call.ID] != call.NO_ITEM]

    async def handed_out(self, rows: ClaimedRows, seconds: float) -> Leased | None:
        """The items that a claim's rows hand out; None if all of them have expired."""
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
        if taken.leased is not None and taken.redriven:
            await self._tell_origins(taken.leased, taken.redriven)
        return taken.leased

    async def _tell_origins(self, leased: Leased, redriven: Sequence[int]) -> None:
        """Tells redriven items of jobs the first workloads that they had."""
        lives = numbers(id_number(leased.ids[index]) for index in redriven)
        rows = await self._ground.rows(call.FIRST_LIVES, (lives,), "origins of redriven workloads")
        for index, (first,) in zip(redriven, rows, strict=True):
            leased.extras.setdefault(index, Extra()).headers = ((ORIGIN, id_text(first)),)

    async def _look_at_others(self) -> bool:
        """Looks now and then for new kinds, ended leases, and items that other nodes made due earlier; returns whether
        it did."""
        now = self._clock.monotonic()
        moment = self._ground.time() or self._server_clock.about()
        if not self._poller.may_look_at_others(self._looked, now) and moment < self._soonest:
            return False
        self._looked = now
        self._dry.forget()
        if settled := self._home.settled_in:
            await self._ground.rows("UPDATE S.home SET known = %s", (settled,), "the server's identity")
            self._home.known()
        moved = await self._outbox.collect()
        await self._kinds.look()
        self._bounds.forget()
        self._soonest = await self._end_leases()
        look, changes = self._stocked.looking(), self._changes
        stocked = [lane for (lane,) in await self._ground.rows(call.STOCKED, ("{}",), "a look for waiting workloads")]
        await self._learn(stocked)
        self._stocked.found(stocked, look)
        self._seen = changes
        if moved:  # there may be more
            self._looked = -math.inf
            self._tell()
        return True

    async def end_over(self) -> None:
        """Ends leases that are over even if nobody claims: all items may have been with a worker that died."""
        self._soonest = await self._end_leases(self._sweep_grace)

    async def _end_leases(self, grace: SweepGrace | None = None) -> int:
        """Ends leases that are over. Returns the end of the next one, by the server's time; BLOCKED: the next poll will
        see it. Reads the server's time first, so that a clock that was set forward ends no lease, and ends leases by
        that time."""
        asked, about = self._clock.monotonic(), "the end of leases"
        given = self._ground.time()
        [(moment, soonest, _, _)] = await self._ground.rows(call.END_LEASES, (given, False), about)
        if given is None:
            self._server_clock.told(moment, asked)
        latest = moment if grace is None else moment - grace.micros(moment)
        if soonest is not None and soonest <= latest and self._server_clock.leases_may_end:
            [(_, soonest, ended, troubles)] = await self._ground.rows(call.END_LEASES, (latest, True), about)
            if troubles:
                _LOG.warning("%s: some leases cannot be ended now: %s", self._ground.server.name, troubles)
            if ended:
                self.changed()
            if ended and soonest is not None:  # there may be more that are over
                return int(soonest)
        # A lease that is over but was not ended is locked by another process, or may not end yet.
        return BLOCKED if soonest is None or soonest <= moment else int(soonest)
