"""The pump of an outbox: hands committed rows to the queue, and removes each once the queue has it durably.

Nothing runs here and nobody is asked for credit: a row becomes an item like any other. Each step may be repeated. Rows
are submitted under their own tokens, so a death between submission and removal makes no second workload; and a row that
was not removed is found again, in whatever order its transactions committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence

from ...model.audit import Audit
from ...model.backoff import OUTBOX, Backoff
from ...model.errors import InvalidRequest, Unavailable, UserError
from ...model.function_spec import FunctionSpec
from ...stores.outbox.item import OutboxRow, item_of
from ...stores.outbox.outbox import Outbox
from ...stores.queue.queue import NewItem
from ..counts import TailerCounts
from ..pump_status import PumpStatus, state_of
from ..resources import Setup
from ..rules.relay import step, still_waiting
from ..rules.watchdog import WatchdogFacts

#: Functions whose rows wait until a worker registers them, and are not looked at before; rows of any further function
#: are set aside.
MOST_UNKNOWN = 1000
TOO_MANY = f"the function is not registered, and rows of {MOST_UNKNOWN} other functions wait to be registered already"
#: Seconds between looks at which functions are registered, and at how many rows wait.
FUNCTIONS_EVERY, COUNT_EVERY = 1.0, 5.0
#: Errors that a queue raises for one row: a refusal, or that a value has no place in it.
_OF_A_ROW = (UserError, ValueError, TypeError, ArithmeticError)


class RelayPump:
    """The pump of one outbox. Invariant: a row is removed only when the queue has answered for it.

    The source sets the number of rows at once, `batch`, and the pace: `poll` seconds between looks when there was none.
    """

    def __init__(self, setup: Setup, counts: TailerCounts, source: Outbox) -> None:
        self.setup = setup
        self.config = setup.config
        self.counts = counts
        self.source = source
        self.needs_a_hand = ""
        self.draining = self._paused = False
        self._in_hand = 0
        self._lag = -1
        self._options = setup.config.options_for(setup.kind)
        self._unreachable = self._store_failing = ""
        self._waiting: set[str] = set()
        self._registered: frozenset[str] | None = None
        self._asked = self._counted = float("-inf")
        self._wake = asyncio.Event()
        self._resting = asyncio.Event()

    async def run(self) -> None:
        """Relays until cancelled."""
        backoff = Backoff(*OUTBOX, random.random)
        try:
            while True:
                self._wake.clear()
                self._resting.clear()
                wait: float | None = None
                if not (self._paused or self.draining):
                    try:
                        wait = 0.0 if await self.turn() else self._options.poll
                        backoff.reset()
                    except Unavailable:
                        wait = backoff.pause()
                if wait != 0.0:
                    self._resting.set()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self._wake.wait()
        finally:
            self._resting.set()
            await self.source.close()

    async def drain(self, timeout: float) -> bool:
        """Takes nothing more; False when the batch in hand did not end within `timeout` seconds."""
        self.draining = True
        self._wake.set()
        try:
            async with asyncio.timeout(timeout):
                await self._resting.wait()
        except TimeoutError:
            return False
        return True

    def pause(self, paused: bool) -> None:
        """Takes nothing more, or goes on."""
        self._paused = paused
        self._wake.set()

    async def turn(self) -> bool:
        """Carries one batch from the outbox to the queue. True when there may be more. Raises Unavailable; all of it
        may be done again."""
        registered = await self._functions()
        self._waiting = still_waiting(self._waiting, registered)
        with self._at_source():
            await self.source.open()
            await self._count()
            rows = await self.source.take(self._options.batch, self.config.window.bytes, sorted(self._waiting))
        items, refused = self._items(rows)
        places, tokens = [*items], {row.place: row.token for row in rows}
        kinds = [item.kind for item in items.values()]
        plan = step([kind.function for kind in kinds], [item.key for item in items.values()], registered)
        self._waiting.update(sorted(plan.unknown)[: max(0, MOST_UNKNOWN - len(self._waiting))])
        if unheard := plan.unknown - self._waiting:
            refused |= {place: TOO_MANY for place, item in items.items() if item.kind.function in unheard}
        stored: list[int] = []
        fresh = 0
        self._in_hand = len(plan.go)
        try:
            if plan.go:
                stored, never, fresh = await self._submit({places[index]: items[places[index]] for index in plan.go})
                refused |= never
            with self._at_source():
                if stored:
                    await self.source.remove({place: tokens[place] for place in stored})
                if refused:
                    await self.source.set_aside(refused)
        finally:
            self._in_hand = 0
        over = len(stored) + len(refused)
        self.counts.read += over
        self.counts.settled += len(stored)
        self.counts.dead += len(refused)
        self.counts.completed += over
        self._lag = max(0, self._lag - over)
        # Where all were repetitions another relay is at work: then this one keeps to its pace.
        return bool(fresh or refused or plan.unknown)

    def _items(self, rows: Sequence[OutboxRow]) -> tuple[dict[int, NewItem], dict[int, str]]:
        """The items that rows become, by place; and the reasons why the other rows are no workloads."""
        now = self.setup.clock.wall()
        items: dict[int, NewItem] = {}
        refused: dict[int, str] = {}
        for row in rows:
            try:
                items[row.place] = item_of(row, now)
            except UserError as error:
                refused[row.place] = str(error)
        return items, refused

    async def _submit(self, items: Mapping[int, NewItem]) -> tuple[list[int], dict[int, str], int]:
        """Submits rows. Returns the places of rows that the queue has now, the reasons for rows that it never takes,
        and the number of rows that it did not have before."""
        refused: dict[int, str] = {}
        queue = self.setup.environment.queue
        stored: list[int] = []
        fresh = 0
        try:
            try:
                answers = await queue.submit([*items.values()])
                stored, fresh = [*items], sum(not each.duplicate for each in answers)
            except _OF_A_ROW:  # one of them: each by itself, in order
                for place, item in items.items():
                    try:
                        [answer] = await queue.submit([item])
                        stored.append(place)
                        fresh += not answer.duplicate
                    except _OF_A_ROW as error:
                        refused[place] = str(error) or type(error).__name__
        except Unavailable as error:
            self._store_failing = str(error)
            raise
        self._store_failing = ""
        return stored, refused, fresh

    async def _functions(self) -> frozenset[str] | None:
        """The names of functions that are registered, as of a moment ago; None where there is no registry."""
        control = self.setup.environment.control
        now = self.setup.clock.monotonic()
        if control is not None and now - self._asked >= FUNCTIONS_EVERY:
            try:
                specs: list[FunctionSpec] = (await control.snapshot()).functions
            except Unavailable as error:
                self._store_failing = str(error)
                raise
            self._registered = frozenset(spec.name for spec in specs)
            self._asked = now
        return self._registered

    async def _count(self) -> None:
        now = self.setup.clock.monotonic()
        if now - self._counted >= COUNT_EVERY:
            self._lag = (await self.source.count()).going
            self._counted = now

    @contextlib.contextmanager
    def _at_source(self) -> Iterator[None]:
        try:
            yield
        except Unavailable as error:
            self._unreachable = str(error)
            raise
        self._unreachable = ""

    # For people.

    @property
    def busy(self) -> bool:
        """Whether a batch is in hand."""
        return self._in_hand > 0

    def status(self) -> PumpStatus:
        """The state and the health of the pump now."""
        waits = sorted(self._waiting)
        unserved = f"no worker runs {', '.join(waits[:3])}" if waits else ""
        waiting = f"rows wait for {', '.join(waits[:3])}: no worker has registered it" if waits else ""
        states: list[tuple[str, str | bool]] = [
            ("disconnected", self._unreachable),
            ("draining", self.draining),
            ("paused", self._paused),
            ("clogged", self._store_failing),
        ]
        facts = WatchdogFacts(
            completions=self.counts.completed,
            lag=self._lag,
            in_flight=self._in_hand,
            source=self._unreachable,
            store=self._store_failing,
            paused=self._paused,
            no_worker=unserved,
        )
        return PumpStatus(*state_of(states, waiting), facts, self._lag)

    def may_seek(self) -> None:
        """Raises InvalidRequest: rows have no positions."""
        raise InvalidRequest(
            f"the tailer {self.config.name!r} reads {self.setup.kind.name} items, which have no checkpoint to move"
        )

    async def expect(self, *functions: str) -> None:
        """Does nothing: no row of an outbox comes due."""

    def audits(self, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """Raises InvalidRequest: its rows are audited as items of the queue."""
        raise InvalidRequest(
            f"the tailer {self.config.name!r} carries an outbox to the queue, which audits what its rows became"
        )
