"""The pump of queue sources: claims by credit, pushes, renews claims that are out, settles each item by itself.

Claiming never waits for settling: room in the window is reserved when items are claimed and returned when their
settlement is durable, so there is always room for the outcome of every item that was pushed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...foundation.lifecycle import end_all
from ...model.backoff import SOURCE, STORE, Backoff
from ...model.claim import Leased, Renewed, State
from ...model.demand import Cell, Demand
from ...model.errors import TailraceError, Unavailable
from ...model.lease import counts_of_claim, wait_for_source
from ...model.outcome import Outcome
from ...model.workload import FLIGHT_ITEMS, Ended, Flight, ref
from ...sdk.source import QueueSource, ReorderingSource
from ..counts import TailerCounts
from ..departures.durable import unless_refused
from ..departures.queue_settlements import QueueSettlements
from ..hand_out import HandOut
from ..resources import Setup
from ..rules.credit import Credit
from ..rules.hand_back import spaced
from ..rules.pieces import PIECE_BYTES
from ..rules.retry_probes import RetryProbes
from ..rules.settlement import Action, Family, History
from ..session import Renewal
from .pump import Pump

#: A claim waits this long for the first due item.
LEASE_WAIT = 1.0
#: Claims under way at once: a second one only for cells that the first did not ask for.
CLAIMS = 2
#: Renewals under way at once.
RENEWALS = 32


@dataclass(slots=True)
class Claim:
    """One claim of the store. `until`: its end, by this host's monotonic clock; `gone`: indexes of items that are not
    ours any more, whose outcomes only return credit; `jobs`: indexes of items of jobs; `max_failures`: how often each
    may fail, for items whose jobs bound that."""

    until: float
    gone: set[int] = field(default_factory=set)
    jobs: frozenset[int] = frozenset()
    max_failures: Mapping[int, int] = field(default_factory=dict)


class QueuePump(Pump):
    """The pump of one queue source. Invariant: `window` counts every claimed item until its settlement is durable."""

    def __init__(self, setup: Setup, counts: TailerCounts, source: QueueSource) -> None:
        super().__init__(setup, counts)
        self.source = source
        self.reconnects = SOURCE.within(self.sizes.heartbeat)
        self._claims: dict[asyncio.Task[None], dict[Cell, int]] = {}
        self._all_asked: tuple[Credit, int] | None = None  # a credit, as of `opened`, all claimed now
        self._claim_failed: BaseException | None = None
        self._renewed = self.clock.monotonic()  # when everything was renewed last
        self._stranded: list[tuple[float, HandOut]] = []  # of lost sessions: returned at that time
        self._retries = RetryProbes()
        self._read_wake, self._strand_wake = self.new_wake(), asyncio.Event()
        self._settling = QueueSettlements(setup, source, self._settled, self._fails)

    async def open(self) -> None:
        """Connects."""
        await self.connecting(self.source.open, self._reopen)

    async def _reopen(self) -> None:
        await self.source.close()
        await self.source.open()

    async def close(self) -> None:
        """Disconnects. Items that are still claimed come back when their lease ends."""
        await end_all(self._claims)
        await self.source.close()

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that run side by side."""
        settling = self._settling
        steps = [settling.run(), settling.bury(), settling.look_for_room()]
        return [self._lease(), *steps, self._heartbeat(), self._strand()]

    # Read: claims by credit.

    async def _lease(self) -> None:
        while True:
            self._read_wake.clear()
            if not self._claim():
                await self._read_wake.wait()
            if self._claim_failed is not None:
                raise self._claim_failed

    def _claim(self) -> bool:
        """Starts a claim for cells that have room and that no claim asks for already. False when none is started."""
        if self.paused or self.draining or not self.session.connected or len(self._claims) >= CLAIMS:
            return False
        credit = self.session.credit
        rooms = credit.rooms()
        if self._claims and self._all_asked == (credit, credit.opened):
            return False
        room = self.window.room()
        total = min(room.items, credit.total_room, FLIGHT_ITEMS)
        if self._claims:
            total = min(total, (self.window.items - self.window.used_items) >> 1)
        if total <= 0:
            return False
        cells = dict(rooms)
        for asked in self._claims.values():
            cells = {cell: left for cell, left in cells.items() if cell not in asked}
        if not cells:
            return False
        demand = Demand(cells, credit.for_queue, total, min(room.bytes, PIECE_BYTES))
        sent = self.clock.monotonic()
        task = asyncio.create_task(self._push_claimed(demand, sent))
        self._claims[task] = cells
        self._all_asked = None if credit.clogs else (credit, credit.opened)
        task.add_done_callback(self._claimed)
        return True

    async def _push_claimed(self, demand: Demand, sent: float) -> None:
        """Claims once; pushes the items found at once, before anything else is woken."""
        leased = await unless_refused(partial(self._ask, demand), self._fails, LEASE_WAIT)
        if leased is not None and leased.ids:
            self._push_claim(leased, sent)

    async def _ask(self, demand: Demand) -> Leased | None:
        """Claims. After a time in which nothing could be renewed all claims are renewed first: else the store would
        hand this tailer its own items anew. Raises Unavailable when the store is away."""
        if self.clock.monotonic() - self._renewed > self.sizes.source - self.sizes.heartbeat:
            await self._renew_all()
        if (clogs := self.session.credit.clogs) and isinstance(self.source, ReorderingSource):
            for id, before in self._retries.next(clogs.keys(), self.clock.monotonic()):
                await self.source.put_first(id, before)
        ask = partial(self.source.lease, demand, wait_for_source(self.sizes), LEASE_WAIT)
        return await self.connecting(ask, self._reopen)

    def _claimed(self, task: asyncio.Task[None]) -> None:
        """Notes that a claim is over."""
        del self._claims[task]
        self._all_asked = None
        if not task.cancelled() and (failed := task.exception()) is not None:
            self._claim_failed = failed
        if self.draining:
            self.wake()  # a drain waits for it
        self._read_wake.set()

    def _push_claim(self, leased: Leased, sent: float) -> None:
        of = {kind: Cell(kind.function, kind.priority) for kind in set(leased.kinds)}
        cells = [of[kind] for kind in leased.kinds]
        flight = Flight(
            number=self.next_flight(),
            fence=leased.fence,
            kinds=leased.kinds,
            ids=leased.ids,
            payloads=leased.payloads,
            attempts=leased.attempts,
            extras=leased.extras,
            wants_result=self.config.results or bool(leased.jobs),
            dues=leased.dues,
        )
        if (clogs := self.session.credit.clogs) and leased.dues and leased.kinds[0].function in clogs:
            self._retries.probed(leased.kinds[0].function, leased.dues[0])
        for extra in leased.extras.values():
            extra.alone = extra.alone or extra.crashes > 0
        self._settling.claimed(flight)
        self.counts.read += len(flight)
        self.window.take(len(flight), sum(map(len, leased.payloads)))
        until = sent + counts_of_claim(self.sizes, leased.lease)
        claim = Claim(until, jobs=frozenset(leased.jobs), max_failures=leased.max_failures)
        out = self.push(flight, cells, Counter(cells), claim)
        if self.draining:
            self._return_all(out)

    # Settle.

    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Acknowledges items, in one write per fence."""
        ours = self._ours(out, indexes)
        ids = out.flight.ids
        done = ids if len(ours) == len(ids) else [ids[index] for index in ours]
        extras = out.flight.extras
        keyed = any(extra.key and index in indexes for index, extra in extras.items()) if extras else False
        self._settling.succeed(out.flight.fence, done, len(indexes), out.release(indexes), awaited=keyed)

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Settles items that did not plainly succeed, or have results."""
        for index, ended in ends.items():
            self._ended(out, index, ended)

    def _ended(self, out: HandOut, index: int, ended: Ended) -> None:
        flight = out.flight
        id_, size = flight.ids[index], len(flight.payloads[index])
        if not self._ours(out, [index]):
            self._settling.succeed(flight.fence, [], 1, size)
        elif ended.outcome == Outcome.SUCCESS and index in out.place.jobs:
            self._settling.succeed_of_job(out, index, size, ended)
        elif ended.outcome == Outcome.SUCCESS:
            self._settling.succeed(flight.fence, [id_], 1, size, ended.result, tenant=flight.kinds[index].tenant)
        else:
            extra, kind = flight.extras.get(index), flight.kinds[index]
            late = max(0.0, self.clock.wall() - out.pushed_at)
            crashes = extra.crashes if extra is not None else 0
            history = History(flight.attempts[index], crashes, self._settling.throttles_of(id_), late)
            backs, now = self._settling.hand_backs, self.clock.monotonic()
            ended = spaced(backs, id_, kind, ended, self.session.credit, late, now)
            settlement = self.settlement(
                kind.function, ended, Family.QUEUE, history, most=out.place.max_failures.get(index, 0)
            )
            self._settling.end(out, index, settlement, ended)
            if settlement.action is Action.RETURN and settlement.failed and ended.outcome == Outcome.RETRY:
                self._retries.failed(kind.function, id_, now + settlement.delay)
        out.release((index,))

    def _settled(self, items: int, size: int, dead: int) -> None:
        """Frees the window of items whose settlements are durable."""
        self.window.give(items, size)
        self.counts.settled += items
        self.counts.dead += dead
        self.wake()

    def _ours(self, out: HandOut, indexes: list[int]) -> list[int]:
        gone = out.place.gone
        return [index for index in indexes if index not in gone] if gone else indexes

    # Renew, and give back the items that a lost session left.

    async def _heartbeat(self) -> None:
        # Once a store is back, claims are to be renewed before they are over, not a whole heartbeat later.
        pauses = Backoff(*STORE.within(self.sizes.heartbeat), random.random)
        pause = self.sizes.heartbeat
        while True:
            await asyncio.sleep(pause)
            try:
                await self._renew_all()
            except Unavailable as error:
                self._fails(str(error))
                pause = pauses.pause()
                continue
            pauses.reset()
            pause = self.sizes.heartbeat
            with contextlib.suppress(TailraceError):
                self.lag = await self.source.waiting()
                self.due = await self.source.due()

    async def _renew_all(self) -> None:
        """Prolongs every claim that has items out, or ended and not settled. Raises Unavailable when the store was away
        for one of them, which is asked again at the next heartbeat."""
        began, limit, unsettled = self.clock.monotonic(), asyncio.Semaphore(RENEWALS), self._settling.unsettled()

        async def one(renew: Callable[[], Awaitable[object]]) -> None:
            async with limit:
                await renew()

        renewals: list[Callable[[], Awaitable[object]]] = []
        renewals += [partial(self._renew, out, unsettled.pop(out.flight.fence, [])) for out in self.flights.values()]
        renewals += [partial(self._prolong, ids, fence) for fence, ids in unsettled.items() if ids]
        done = await asyncio.gather(*(one(each) for each in renewals), return_exceptions=True)
        for failed in done:
            if failed is not None:
                raise failed
        self._renewed = began

    async def _prolong(self, ids: list[str], fence: int) -> Renewed:
        """Prolongs the leases of these items of one claim."""
        renewed = await self.source.renew(ids, fence, wait_for_source(self.sizes), State.PROCESSING)
        self._fails("")
        return renewed

    async def _renew(self, out: HandOut, ended: Sequence[str]) -> None:
        """Prolongs one claim, of which the items `ended` are not settled yet."""
        claim: Claim = out.place
        flight = out.flight
        still = {flight.ids[index]: index for index in out.still_open() if index not in claim.gone}
        if not (still or ended):
            return
        sent = self.clock.monotonic()
        renewed = await self._prolong([*still, *ended], flight.fence)
        lost = [still[id_] for id_ in renewed.lost if id_ in still]
        if len(lost) < len(still):  # else nothing of it is ours, and nothing is granted on its strength
            claim.until = max(claim.until, sent + counts_of_claim(self.sizes, renewed.lease))
        claim.gone.update(index for index in lost if out.open[index])
        stop = {*lost, *(still[id_] for id_ in renewed.cancel if id_ in still)}
        if stop and flight.number in self.flights:
            self.session.cancel([ref(flight.number, index) for index in stop if out.open[index]])

    async def _strand(self) -> None:
        """Returns the items of a lost session once nothing of them can be running."""
        while True:
            self._strand_wake.clear()
            now = self.clock.monotonic()
            for _, out in [one for one in self._stranded if one[0] <= now]:
                self._return_open(out)
            self._stranded = [one for one in self._stranded if one[0] > now]
            timeout = min((time - now for time, _ in self._stranded), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._strand_wake.wait()

    def _return_open(self, out: HandOut) -> None:
        for index in out.still_open():
            out.close([index])
            self._ended(out, index, Ended(Outcome.LOST, "the scheduler's session was lost"))

    def _return_all(self, out: HandOut) -> None:
        """Returns a claim that came while draining: it is not pushed, since cancelling it before it could start would
        still spend a message."""
        self.session.withdraw(out.flight.number)
        self.session.credit.give(out.counts)
        del self.flights[out.flight.number]
        for index in out.still_open():
            out.close([index])
            self._ended(out, index, Ended(Outcome.HELD, "draining"))

    # For the session.

    def held_for(self, flight: int) -> float:
        """Seconds that the claim behind a flight still lasts."""
        out = self.flights.get(flight)
        return 0.0 if out is None else max(0.0, out.place.until - self.clock.monotonic())

    def renewal(self) -> Renewal:
        """The flights whose claims last for more than a heartbeat. The scheduler lets go of the others, and will not
        tell how they end: here they are let go of too, and go back when nothing of them can be running."""
        now = self.clock.monotonic()
        least = now + self.sizes.heartbeat
        held = {number: out.place.until for number, out in self.flights.items() if out.place.until > least}
        credit = self.session.credit
        for number in self.flights.keys() - held.keys():
            out = self.flights.pop(number)
            credit.give(out.counts, out.newly_clogged(credit.clogs, out.counts) if credit.clogs else None)
            self._stranded.append((out.place.until, out))
            self._strand_wake.set()
        return Renewal(min(held.values(), default=now) - now, list(held))

    def credit_changed(self) -> None:
        """Has every loop look again: limits, gates or functions are new."""
        self.wake()

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """Keeps the items that were out until nothing of them can be running any more; then they go back into the
        queue."""
        now = self.clock.monotonic()
        flights, self.flights = self.flights, {}
        self._stranded.extend((now if number in unsent else now + wait, out) for number, out in flights.items())
        self._strand_wake.set()
        self.wake()

    # For people.

    @property
    def busy(self) -> bool:
        """Whether something is out, or on its way into a store."""
        return bool(self.flights or self._claims or self._settling.busy or self._stranded)

    @property
    def held(self) -> int:
        """Number of items that were handed back time and again, or wait for room for their letters, and wait in the
        queue for us; it holds all others by itself."""
        now, settling = self.clock.monotonic(), self._settling
        return settling.hand_backs.waiting(now) + settling.letter_waits.waiting(now)

    @property
    def held_because(self) -> str:
        waits = self._settling.letter_waits
        return waits.why if waits else self._settling.hand_backs.why

    @property
    def store_failing(self) -> str:
        """The reason why a store refuses, the one of the dead letters included."""
        return super().store_failing or self._settling.letters_failing

    @property
    def clogged(self) -> str:
        """The reason why nothing more is claimed although there may be more; empty when that is not so."""
        if failing := self.store_failing:
            return failing
        if not self.session.functions:
            return "no worker runs any function"
        return ""

    def _fails(self, why: str) -> None:
        self._store_failing = why
