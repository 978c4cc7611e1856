"""Read, push, settle: the steps that pumps of queues and of streams share, over batches; every rule is in rules/.

A pump lives from one opening of its source to the first error that is not a lost connection; the tailer (`tailer.py`)
starts another one. It owns one session with a scheduler.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...foundation.logger import Logger
from ...foundation.together import together
from ...model.audit import Audit
from ...model.backoff import SOURCE
from ...model.demand import Cell, Closed
from ...model.errors import InvalidRequest, NotConnected
from ...model.jitter import jittered
from ...model.outcome import Outcome
from ...model.retry import DEFAULT_RETRY, Retry, bounded
from ...model.workload import INDEX_BITS, Ended, Flight, Outcomes
from ...stores import heights
from ..counts import TailerCounts
from ..hand_out import HandOut
from ..height_check import HeightCheck
from ..mapping.estimating import put_estimates
from ..mapping.record_values import unit_sources
from ..pump_status import PumpStatus, state_of
from ..resources import Setup
from ..rules.by_flight import by_flight
from ..rules.clog import OnOutage, settle_in_outage
from ..rules.reconnect import Reconnect
from ..rules.settlement import Action, Family, History, Settlement, settle
from ..rules.watchdog import WatchdogFacts
from ..session import Renewal, SchedulerSession
from ..tracing import tracing_of

log = Logger("tailrace.tailer")

T = TypeVar("T")


class Pump(ABC):
    """A pump, as far as it does not depend on the family of its source."""

    def __init__(self, setup: Setup, counts: TailerCounts) -> None:
        self.setup = setup
        self.config, self.sizes = setup.config, setup.sizes
        self.clock, self.counts = setup.clock, counts
        self.units = unit_sources(setup.config.units)
        self.window = setup.config.window.rule()
        self.height_check = HeightCheck(
            setup.environment.heights, heights.QUEUE if setup.kind.family == "queue" else heights.STATE
        )
        self.session = SchedulerSession(
            setup.scheduler,
            setup.config.name,
            self,
            setup.sizes,
            setup.clock,
            through_outages=setup.config.on_outage == OnOutage.PARK,
            height_check=self.height_check,
        )
        self.flights: dict[int, HandOut] = {}
        self.tracing = tracing_of(setup.config.name, setup.config.trace_ratio)
        self.paused = self.draining = False
        self.lag = -1
        self.reconnects = SOURCE  # the pauses before a source that is not connected is opened again
        self.due: dict[str, int] | None = None  # by function, where lag also counts items not due
        self._last_flight = 0
        self._wakes: list[asyncio.Event] = []
        self._store_failing = ""
        self.source_unreachable = ""  # why the source cannot be reached

    async def run(self) -> None:
        """Opens the source and pumps until cancelled; raises the error that ends it."""
        try:
            self.session.start()
            await self.open()
            await together(*self.steps(), self.height_check.run(), self.session.wait())
        finally:
            await self.session.close()
            await self.close()

    async def drain(self, timeout: float) -> bool:
        """Reads nothing more and waits until nothing is out; False when `timeout` seconds did not suffice."""
        self.draining = True
        self.session.drain()
        wake = self.new_wake()
        self.wake()
        try:
            async with asyncio.timeout(timeout):
                while self.busy:
                    wake.clear()
                    await wake.wait()
        except TimeoutError:
            return False
        return True

    def pause(self, paused: bool) -> None:
        """Reads nothing more, or goes on."""
        self.paused = paused
        self.wake()

    def may_seek(self) -> None:
        """Raises InvalidRequest: the source has no checkpoint."""
        raise InvalidRequest(
            f"the tailer {self.config.name!r} reads {self.setup.kind.name} items, which have no checkpoint to move"
        )

    async def expect(self, *functions: str) -> None:  # noqa: B027 - nothing that most read comes due
        """Expects due items of these functions from now on."""

    # Its state and health.

    def status(self) -> PumpStatus:
        """The state and the health of the pump now. A tailer of many functions runs while one of them is clogged."""
        session, outages = self.session, self.outages
        held, why_held = self.held, self.held_because
        outage = "; ".join(sorted(closed.reason for closed in outages))
        waiting = f"{held} items are held: {why_held}" if held and why_held else ""
        disconnected = session.unreachable and not session.connected
        states: list[tuple[str, str | bool]] = [
            ("disconnected", self.source_unreachable),
            ("draining", self.draining),
            ("starting", self.starting),
            ("paused", self.paused),
            ("disconnected", session.unreachable if disconnected else ""),
            ("clogged", self.clogged or (outage if self.only_function else "")),
        ]
        since = min((closed.since for closed in outages), default=0.0)
        state = state_of(states, outage or waiting)
        return PumpStatus(*state, self._facts(), self.lag, self.unaccounted, self.classes, since)

    def _facts(self) -> WatchdogFacts:
        session, credit = self.session, self.session.credit
        names = self.functions or set(session.functions)
        unserved = sorted(names - credit.served())
        no_worker = ""
        if session.connected and len(unserved) == len(names):
            no_worker = f"no worker runs {', '.join(unserved[:3])}" if unserved else "no worker runs any function"
        gates = sorted({closed.reason for closed in credit.closed if not closed.function or closed.function in names})
        pushed = min((out.pushed_at for out in self.flights.values()), default=None)
        return WatchdogFacts(
            completions=self.counts.completed,
            lag=self.backlog,
            in_flight=self.in_flight,
            held=self.held,
            oldest=0.0 if pushed is None else max(0.0, self.clock.wall() - pushed),
            source=self.source_unreachable,
            store=self.store_failing,
            scheduler=session.unreachable if not session.connected else "",
            starting=self.starting,
            standing_by=self.standing_by,
            paused=self.paused,
            clogged="; ".join(closed.reason for closed in self.outages),
            gate="; ".join(gates[:3]),
            no_worker=no_worker,
            held_because=self.held_because,
        )

    # For each family to add.

    needs_a_hand = ""

    @property
    def starting(self) -> str:
        """The reason why nothing may be pushed yet; empty when it may."""
        return ""

    @property
    def standing_by(self) -> bool:
        """Whether another process has its source, or is to have it: there is nothing to do here."""
        return False

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether something is out, or on its way into a store."""

    @property
    @abstractmethod
    def held(self) -> int:
        """Number of items that are held."""

    @property
    def held_because(self) -> str:
        """The commonest reasons why items are held, for people."""
        return ""

    @property
    def store_failing(self) -> str:
        """The reason why something cannot be written; empty when everything can."""
        return self._store_failing or self.height_check.failing

    @property
    def functions(self) -> set[str]:
        """The functions of the items that it reads, as far as it knows; none: it may be any."""
        only = self.only_function
        return set(self.due or ()) if only is None else {only}

    @property
    def backlog(self) -> int:
        """Number of items that could run now, for all that the source says; -1: it has not said. At most some thousands
        of each function."""
        return self.lag if self.due is None else sum(self.due.values())

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """Audits of the partitions: how every position of each, or of a range of one, ended. Raises InvalidRequest for
        a range that is none, and for a source that has no positions."""
        raise InvalidRequest(f"the tailer {self.config.name!r} reads a queue, which has no positions to audit")

    @property
    def unaccounted(self) -> int:
        """Number of items that the running audit misses or counts twice."""
        return 0

    @property
    def classes(self) -> dict[str, int]:
        """Number of positions in each class, by the running audit."""
        return {}

    @property
    @abstractmethod
    def clogged(self) -> str:
        """The reason why nothing more is read although there may be more; empty when that is not so."""

    @abstractmethod
    async def open(self) -> None:
        """Takes the source."""

    @abstractmethod
    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that run side by side."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of the source."""

    @abstractmethod
    def held_for(self, flight: int) -> float: ...

    @abstractmethod
    def renewal(self) -> Renewal: ...

    def session_opened(self) -> None:  # noqa: B027 - most need not know
        """Hears that a connection to a scheduler is up, perhaps to another one than before."""

    @abstractmethod
    def credit_changed(self) -> None: ...

    @abstractmethod
    def session_lost(self, wait: float, unsent: Sequence[int]) -> None: ...

    @abstractmethod
    def succeeded(self, out: HandOut, indexes: list[int]) -> None:
        """Settles items that ended well and returned nothing to keep."""

    @abstractmethod
    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Settles items, by their index, that ended otherwise."""

    # The shared steps.

    def outcomes_came(self, outcomes: Outcomes) -> None:
        """Returns credit and settles, flight by flight: plain successes first, then all other ends."""
        returned: list[tuple[HandOut, Mapping[Cell, int]]] = []
        for out, indexes in self._closed(outcomes.succeeded, returned):
            self.counts.completed += len(indexes)
            if out.traced and self.tracing is not None:
                self.tracing.ended(out, {}, self.clock.wall())
            self.succeeded(out, indexes)
        for out, indexes in self._closed(outcomes.ended, returned):
            first = out.flight.number << INDEX_BITS
            ends = {index: outcomes.ended[first | index] for index in indexes}
            if out.traced and self.tracing is not None:
                self.tracing.ended(out, ends, self.clock.wall())
            well = [index for index, ended in ends.items() if ended.outcome == Outcome.SUCCESS]
            self.counts.completed += len(well)
            if plain := [index for index in well if ends[index].result is None]:
                self.succeeded(out, plain)
                for index in plain:
                    del ends[index]
            self.ended(out, ends)
        credit = self.session.credit
        for out, counts in returned:
            credit.give(counts, out.newly_clogged(credit.clogs, counts) if credit.clogs else None)
        self.wake()

    def _closed(
        self, refs: Iterable[int], returned: list[tuple[HandOut, Mapping[Cell, int]]]
    ) -> Iterator[tuple[HandOut, list[int]]]:
        """Yields the hand-outs in which items ended that had not before, with their indexes; adds to `returned` the
        credit that comes back with each."""
        for number, indexes in by_flight(refs):
            out = self.flights.get(number)
            if out is None:
                continue
            fresh = out.close(indexes)
            if not out.left:
                del self.flights[number]
            if fresh:
                returned.append((out, out.give_back(fresh)))
                yield out, fresh

    def push(
        self, flight: Flight, cells: list[Cell], counts: Counter[Cell], place: Any, *, taken: bool = False
    ) -> HandOut:
        """Hands a flight out; takes its credit, unless that was done (`taken`)."""
        out = HandOut(flight, cells, counts, self.clock.wall(), place, self.session.credit.clogs)
        self.flights[flight.number] = out
        if self.tracing is not None:
            out.traced = self.tracing.pushed(flight, place, out.pushed_at)
        if not taken:
            self.session.credit.take(counts)
        put_estimates(flight, self.units, self.session.functions, self.session.estimating)
        self.session.push(flight)
        return out

    def next_flight(self) -> int:
        """A number that no flight of this pump had."""
        self._last_flight += 1
        return self._last_flight

    def policy(self, function: str, origin: str = "") -> Retry:
        """The retry policy: the YAML's, else that of the tailer the item first came from, else the function's."""
        retry = self.config.retry
        if retry is None and origin and (first := self.setup.origin(origin)) is not None:
            retry = first.retry
        if retry is not None:
            return retry.policy()
        spec = self.session.functions.get(function)
        return DEFAULT_RETRY if spec is None else spec.retry

    def settlement(
        self, function: str, ended: Ended, family: Family, history: History, origin: str = "", most: int = 0
    ) -> Settlement:
        """The settlement of an item that did not plainly succeed, and may fail at most `most` times (0: as its function
        says)."""
        policy = bounded(self.policy(function, origin), most)
        settlement = settle(ended, family, policy, history, random.random)
        if function in self.session.credit.clogs:
            settlement = settle_in_outage(settlement, ended, family, history)
        over = settlement.action in (Action.DONE, Action.DEAD, Action.PARK)
        self.counts.completed += over or settlement.failed >= history.attempt
        return settlement

    def new_wake(self) -> asyncio.Event:
        """An event that is set whenever anything changed; each loop has its own."""
        event = asyncio.Event()
        self._wakes.append(event)
        return event

    def wake(self) -> None:
        """Has every loop look again, since something changed."""
        for event in self._wakes:
            event.set()

    async def connecting(self, call: Callable[[], Awaitable[T]], again: Callable[[], Awaitable[object]]) -> T:
        """The answer of a source, with reconnections by `again`, and back-off, for as long as it is not connected."""
        reconnect = Reconnect(self.reconnects)
        reopen = False
        while True:
            try:
                if reopen:
                    await again()
                answer = await call()
            except NotConnected as error:
                reason = str(error) or "the source is not connected"
                lost = reconnect.lost(reason, self.clock.monotonic())
                if lost.news and not self.setup.row:  # of a shared source shared_pump.py says it
                    log.warning("not connected", tailer=self.config.name, reason=reason)
                self.source_unreachable, reopen = reason, True
                await asyncio.sleep(jittered(lost.pause, random.random))
            else:
                if reconnect.reached(self.clock.monotonic()) and not self.setup.row:
                    log.info("connected again", tailer=self.config.name)
                self.source_unreachable = ""
                return answer

    @property
    def in_flight(self) -> int:
        """Number of items that were pushed and have no outcome."""
        return sum(out.left for out in self.flights.values())

    @property
    def only_function(self) -> str | None:
        """The function of every item that it reads; None: each item names its own."""
        function = self.config.function
        return function if isinstance(function, str) else None

    @property
    def outages(self) -> list[Closed]:
        """The functions of this tailer that are clogged."""
        only = self.only_function
        return [closed for name, closed in self.session.credit.clogs.items() if only in (None, name)]
