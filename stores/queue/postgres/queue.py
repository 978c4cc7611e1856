"""The queue on PostgreSQL: each method is one call of a function of the schema
(stores/postgres/migrations/0001_queue.sql), over columns, in one transaction. Any number of nodes may use one queue.

The time is the server's, so that a node whose clock is wrong starts nothing early. A waiting lease looks when this
process changed something, when another one hints that it did, when the next item is due, and in any case once a second.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial

import psycopg

from ....foundation.clock import SYSTEM_CLOCK, Clock
from ....model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ....model.demand import Demand
from ....model.errors import InvalidRequest, Unavailable
from ....model.one_item import BEHIND, CHANGED
from ....model.search import Search
from ....model.tries import Try
from ....model.workload import Headers
from ...config import StoresConfig
from ...postgres.arrays import numbers
from ...postgres.hints import PostgresHints
from ...postgres.server import explained
from ...trusted_time import TrustedTime, server_time
from ..admission import check, check_changes
from ..counts import Held
from ..engines import QueueEngine
from ..gates import ShutLanes
from ..history import kept
from ..ids import Ids, id_number, id_text
from ..lifecycle import LEASED, TERMINAL, WAITING
from ..poller import Found, LookResult, Poller
from ..queue import Ageing, ItemContent, NewItem, Page, Reschedule, Status, Submitted, Tally
from ..shared_settlements import FEW, Succeeded, settlements
from ..shared_submissions import submissions
from ..waiting import WaitingClaims
from . import statements as call
from .capacity import Capacity
from .checked_server import CheckedPostgres
from .claiming import PostgresClaiming
from .claims import ClaimsOut
from .collect import PostgresCollecting
from .find import find
from .items import peek, rescheduled
from .options import PostgresQueueOptions
from .pollers import PostgresPollers
from .reports import ages, counts, headers, statuses, tally, tries
from .settle import SettleReply, settled, succeeded_together
from .submit import stored

_LOG = logging.getLogger("tailrace.stores")


class PostgresQueue:
    """A Queue in a schema of its own. `wait`: the lease of a source, seconds; for this long nothing is leased on a
    server that was put back from a copy or promoted. `fleet`: the fleet of this process; empty: none. `store_time` is
    for tests: returns µs to use instead of the server's clock."""

    def __init__(
        self,
        options: PostgresQueueOptions,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        wait: float = 40.0,
        fleet: str = "",
        store_time: Callable[[], int] | None = None,
        times: dict[str, TrustedTime] | None = None,
    ) -> None:
        self._config = config or StoresConfig()
        self._clock = clock
        self.trusted = server_time(clock, times, "PostgreSQL server of the queue")  # the time by which old things go
        self._time: Callable[[], int | None] = store_time or (lambda: None)
        self.ground = ground = CheckedPostgres(options, self._config, wait, clock, self._time, fleet)
        self._home, self._kinds, self._rows, self._read = ground.home, ground.kinds, ground.rows, ground.read
        self._write = ground.write
        self.quiet_until = -math.inf  # nothing is leased before this time of the monotonic clock
        self._ids, self._out = Ids(0), ClaimsOut()
        self._ends: list[Callable[[], None]] = []
        self._poller = Poller(options.poll_interval, PostgresPollers(ground.read))
        self._waiting = WaitingClaims(self.settle, self._poller)
        self._submissions = submissions(self._store, self._waiting.run)
        self._settlements = settlements(self._succeed, self._waiting.run)
        self.room = Capacity(self._config.max_waiting, self.counts, clock, self._waiting.run)
        self._hints = PostgresHints(options, ground.read, self._hinted, "queue")
        self._outbox = PostgresCollecting(ground.rows, self._time, self._config)
        self._claiming = PostgresClaiming(
            ground,
            self._poller,
            self._config.low_share,
            self._out,
            self._outbox,
            self._hints.tell,
            self.settle,
        )

    async def open(self) -> None:
        """Checks the server, and makes the schema if there is none. Raises ConfigError for a server or schema that
        cannot be used; a server that cannot be reached now is tried again at each use. Harmless when open."""
        self.ground.server.open()
        self._hints.open()
        try:
            await self._kinds.look()
        except Unavailable as error:
            _LOG.warning("%s; trying again at each use", error)

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        await self._hints.close()
        await self._waiting.close()
        await self.ground.server.close()

    # For jobs, which are in the same schema (stores/jobs).

    @property
    def max_payload(self) -> int:
        """Most bytes that a payload may have."""
        return self._config.max_payload

    def new_ids(self, count: int) -> Sequence[int]:
        """Returns new ids."""
        return self._ids.take(count, int(self._clock.wall() * 1000))

    def stored(self, lanes: Sequence[int], moment: int) -> None:
        """Notes that items were stored in these lanes, due since that moment (µs)."""
        if lanes:
            self._claiming.stored(lanes, moment)
            self._wake()

    def changed(self) -> None:
        """Makes waiting leases look at once: anything may be due."""
        self._wake(anything=True)

    def on_ends(self, told: Callable[[], None]) -> None:
        """Has `told` called whenever a settlement here ends items of jobs."""
        self._ends.append(told)

    def _hinted(self) -> None:
        """Follows a hint of another node that it changed something."""
        self._claiming.hinted()
        self._poller.hinted()

    def _wake(self, *, anything: bool = False) -> None:
        """Makes waiting leases look at once: items may be due."""
        if anything:
            self._claiming.changed()
        self._hints.tell()
        self._waiting.wake()

    # Submissions: concurrent ones share a transaction.

    async def tell_again(self, items: Sequence[NewItem]) -> list[Submitted]:
        return await self.submit(items, own=True)

    async def submit(self, items: Sequence[NewItem], *, own: bool = False) -> list[Submitted]:
        check(items, self._config.max_payload, own=own)
        if not items:
            return []
        self._claiming.submitted({item.kind.priority for item in items})
        return await self._submissions.add(items)

    async def _store(self, items: Sequence[NewItem]) -> list[Submitted]:
        await self.room.look(len(items))
        await self._kinds.add(item.kind for item in items)
        if callbacks := [item.on_done.kind for item in items if item.on_done is not None]:
            await self._kinds.add(callbacks)
        lanes = [self._kinds.lane_of[self._kinds.numbers[item.kind]] for item in items]
        await self._waiting.takers.ready(items)
        taker = self._waiting.takers.reserve(items) if self._quiet() <= 0 else None
        claim = () if taker is None else self._claiming.arguments_of(taker, {*lanes})
        leased: Leased | None = None
        try:
            times = self._time(), int(self._clock.wall() * 1000)
            ids, first, moment, found = await stored(
                self._write, self._kinds, self._ids, items, times, claim, self._config.key_rule
            )
            taken = self._claiming.turned(found)
            if taker is not None and taken:
                leased = await self._claiming.handed_out(taken, taker.seconds)
                if leased is not None and self._quiet() > 0:
                    await self._waiting.give_back(leased)
                    leased = None
        except psycopg.errors.UniqueViolation as error:
            raise explained(error, self.ground.server.name, "a submission") from None
        finally:
            if taker is not None:
                self._waiting.bring(taker, leased)
        self.room.taken(len(items) - len(first))
        out = {row[call.ID] for row in taken}.union(first)
        stored_now = zip(ids, lanes, items, strict=True)
        left = [(number, lane, item) for number, lane, item in stored_now if number not in out]
        moments = [(lane, int(item.due * 1e6) or moment) for _, lane, item in left]
        self._claiming.put(moments, {number: lane for number, lane, item in left if not item.due})
        if left:
            self._wake(anything=any(item.due for _, _, item in left))
        if leased is not None:
            await self._waiting.takers.pushed()
        return [Submitted(id_text(first.get(number, number)), number in first) for number in ids]

    # Leases.

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        if seconds <= 0:
            raise InvalidRequest(f"a lease of {seconds} seconds: expected more than zero")
        gates = ShutLanes(demand.closed)
        look = partial(self._claim, demand, gates, seconds)
        return await self._waiting.lease(demand, seconds, look, wait, self._quiet)

    def _quiet(self) -> float:
        """Seconds for which nothing may be leased."""
        return max(self.quiet_until, self._home.quiet_until) - self._clock.monotonic()

    async def _claim(self, demand: Demand, gates: ShutLanes, seconds: float) -> Found:
        found = await self._claiming.look(demand, gates, seconds)
        if isinstance(found, LookResult) and self._quiet() > 0:
            # The claim was the first to reach this server, on which nothing may be leased yet: give it back.
            await self._waiting.give_back(found.leased)
            return math.inf
        return found

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        if phase is not State.PROCESSING:
            raise InvalidRequest(f"a lease is renewed as processing, not as {phase.label}")
        rows = await self._rows(
            call.RENEW,
            (self._time(), numbers(map(id_number, ids)), fence, int(seconds * 1e6), int(phase)),
            "a renewal",
        )
        claims: dict[int, list[int]] = {}
        for number, _, claim in rows:
            claims.setdefault(claim, []).append(number)
        for claim, held in claims.items():
            self._out.renewed(claim, fence, held)
        kept = {number for number, _, _ in rows}
        return Renewed(
            seconds,
            [each for each in ids if id_number(each) not in kept],
            [id_text(number) for number, cancel, _ in rows if cancel],
        )

    # Ends.

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        if not others and 0 < len(succeeded) <= FEW:
            return await self._settlements.add(Succeeded(fence, succeeded))
        return self._settled(await settled(self._write, self._out, self._time(), fence, succeeded, others))[0]

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        reply = await settled(self._write, self._out, self._time(), fence, succeeded, others, told=True)
        return ResultSettlement(self._settled(reply)[0], dict(reply.unfit))

    async def _succeed(self, group: Sequence[Succeeded]) -> list[list[str]]:
        return self._settled(await succeeded_together(self._write, self._out, self._time(), group))

    def _settled(self, reply: SettleReply) -> list[list[str]]:
        if reply.again:
            self._wake(anything=True)
        if reply.fed is not None:
            self.stored(reply.fed, reply.moment)
            for each in self._ends:
                each()
        return reply.refused

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        wanted = numbers(map(id_number, ids))
        [(answers, again)] = await self._write(call.CANCEL, (self._time(), wanted), "a cancellation")
        if again:
            self._wake(anything=True)
        return list(answers)

    # One item at a time.

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        check_changes(changes)
        answers = [await rescheduled(self._rows, self._read, self._kinds, self._time(), each) for each in changes]
        if not {CHANGED, BEHIND}.isdisjoint(answers):
            self._wake(anything=True)
        return answers

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        return await peek(self._read, id, max_bytes)

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        return await statuses(self._read, self._kinds, self._kinds.look, ids)

    async def find(self, search: Search) -> Page:
        return await find(self._read, self._kinds, search, self._config.key_rule)

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        return await tries(self._read, ids)

    async def headers(self, ids: Sequence[str]) -> dict[str, Headers]:
        return await headers(self._read, ids)

    async def counts(self) -> dict[str, int]:
        return await counts(self._read)

    async def held(self) -> Held:
        items = await self.counts()
        live = sum(items[state.label] for state in WAITING | LEASED)
        known = any(kind.tenant for kind in [*self._kinds.kinds.values()])
        if live * 2 <= self._config.max_waiting or not known:
            return Held(self._config.max_waiting, live, {})
        return Held(self._config.max_waiting, live, dict(await self._read(call.HELD, (), "the room of tenants")))

    async def tally(self) -> Tally:
        return await tally(self._read)

    async def due(self, most: int) -> dict[str, int]:
        return dict(await self._read(call.DUE, (self._time(), most), "a look for due workloads"))

    async def ageing(self) -> list[Ageing]:
        return ages(await self._read(call.AGEING, (self._time(),), "the ages of waiting workloads"))

    async def sweep(self) -> int:
        """Ends leases that are over, folds the counts, and removes items that are past their retention; returns how
        many it removed. The owner calls it now and then, and again at once while it removes some."""
        try:
            if self._quiet() <= 0:
                await self._claiming.end_over()
            if await self._outbox.collect():
                self._claiming.collected()
                self._wake(anything=True)
            items = await self.counts()
            ended = sum(items[state.label] for state in TERMINAL)
            [(size,)] = await self._read(call.HISTORY, (), "the size of the history")
            keep = kept(self._config.keep_ended, ended, size, self._config.history_bytes)
            [(now,)] = await self._read(call.NOW, (self._time(),), "the time")
            oldest = self.trusted.micros(now) - int(self._config.retention * 1e6)
            [(gone,)] = await self._rows(call.SWEEP, (self._time(), self._time(), oldest, keep))
        except Unavailable as error:
            _LOG.warning("%s; sweeping again later", error)
            return 0
        return int(gone)


ENGINE = QueueEngine("postgres", PostgresQueueOptions, PostgresQueue)
