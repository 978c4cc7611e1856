"""Destinations of departures from a stream tailer: a queue for each, so that one that is away holds up no other.

Here are the awaits; `rules/departure_steps.py` says what follows each answer. Only when all its writes are durable may
the frontier pass an item (law 3). Batches, never item by item; a step that failed is repeated without those before it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace as copy
from functools import partial
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from ...foundation.logger import Logger
from ...model.backoff import STORE
from ...model.dead_letter import DeadLetter
from ...model.drop import Drop
from ...model.errors import Overloaded, UserError
from ...model.ledger import LedgerEntry
from ...model.parked import Parked
from ...sdk.source import Placed
from ..ledger.rows import RowChange, RowHome, Rows
from ..partition import Partition
from ..registry import kind_of
from ..resources import Setup
from ..rules.departure_steps import DepartureEvent, Step, Way, follow
from ..rules.detached import FIRST_LOOK
from ..rules.letter_waits import LOOK
from ..tracing import tracing_of
from .dead_letters import unparkable
from .departure import Departure, as_row_says
from .durable import DurableWriter

#: Ways of departures that somebody waits for: nothing gathers while one is here.
AWAITED = frozenset((Way.COUNT, Way.FREE))

#: Ways after which nothing is left of a redriven item: its letter is forgotten.
_ENDS = frozenset((Way.STORE, Way.DROP, Way.END))
#: Seconds within which a source says where items lie, for their letters.
PLACES_WITHIN = 10.0

Append = Callable[[list[Departure]], Awaitable[None]]

log = Logger("tailrace.tailer")


class Destinations:
    """The queues of one tailer. `done` gets each departure that is over."""

    def __init__(self, setup: Setup, rows: Rows, done: Callable[[list[Departure]], None]) -> None:
        self._tailer = setup.config.name
        self._environment = setup.environment
        self._row_cache = setup.row_cache
        self._origin, self._sources = setup.origin, dict[str, tuple[Any, Placed]]()
        self._parking = setup.parking
        self._clock = setup.clock
        self._tracing = tracing_of(setup.config.name, 0.0)
        self._rows = rows
        self._done = done
        many = setup.config.order == "none"  # in order, the next one waits until the one before it is gone
        self._pauses = STORE.within(setup.sizes.heartbeat)
        self._by_way: dict[Way, DurableWriter[Departure]] = {}
        self._queue(self._park, Way.PARK, Way.DETACH, gathering=many)
        # Apart, since a full delay service takes retries of what it has, but no guards.
        self._queue(self._park, Way.GUARD, Way.GUARD_SOONER, gathering=many)
        self._queue(self._bury, Way.BURY, gathering=many)
        self._queue(self._store, Way.STORE)
        self._queue(self._note, Way.DROP)
        self._queue(None, Way.END, Way.COUNT, Way.RELEASE, Way.FREE, gathering=many)
        self._queues = tuple(dict.fromkeys(self._by_way.values()))
        self._full: list[Departure] = []  # those whose letters wait for room
        self._some_full = asyncio.Event()

    def _queue(self, append: Append | None, *ways: Way, gathering: bool = False) -> None:
        """Makes the queue of one destination, for the ways that lead there; `append` None: nothing is appended."""
        write = partial(self._deliver, append, frozenset(ways))
        self._by_way |= dict.fromkeys(
            ways, DurableWriter(write, self._delivered, gathering=gathering, pauses=self._pauses)
        )

    def __iter__(self) -> Iterator[Departure]:
        """Iterates over all departures that are on their way."""
        return chain(chain.from_iterable(self._queues), self._full)

    @property
    def waiting(self) -> int:
        """Number of departures whose letters wait for room, and which stay in their source as well."""
        return len(self._full)

    @property
    def failing(self) -> str:
        """The reason why a store refuses; empty when none does."""
        return next((queue.why for queue in self._queues if queue.why), "")

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that write."""
        return [*[queue.run() for queue in self._queues], self._bury_again()]

    def add(self, departure: Departure, due_in: float | None = None) -> None:
        """Takes a departure on its way, which is due again in so many seconds, if it ever is."""
        size, way = _size(departure), departure.leg.way
        queue = self._by_way[way]
        if due_in is None:
            queue.add(departure, size, awaited=way in AWAITED)
        else:
            queue.add(departure, size, due_in)

    async def _deliver(self, append: Append | None, ways: frozenset[Way], batch: list[Departure]) -> None:
        """Takes a batch on by the steps that are left. A departure that was refused here may go another way from now
        on."""
        while writing := [each for each in batch if each.leg.step is Step.ROW]:
            for each, found in zip(writing, await self._write(writing), strict=True):
                self._wrote(each, found)
        while append is not None and (
            appending := [each for each in batch if each.leg.step is Step.APPEND and each.leg.way in ways]
        ):
            await append(appending)
        marking = [each for each in batch if each.leg.step is Step.MARK]
        await self._write(marking)
        for each in marking:
            self._went_on(each, DepartureEvent.MARKED)
        ended = [each.letter for each in batch if each.letter and each.leg.way in _ENDS and each.leg.step is Step.DONE]
        if ended:
            await self._environment.dead_letters.remove(ended)

    def _delivered(self, batch: list[Departure]) -> None:
        if full := [each for each in batch if each.leg.step is Step.NO_ROOM and each.item is None]:
            self._full += full
            self._some_full.set()
            batch = [each for each in batch if each.leg.step is not Step.NO_ROOM or each.item is not None]
        refused = [each for each in batch if each.leg.step is Step.APPEND]
        for each in refused:
            self.add(each)
        self._done([each for each in batch if each.leg.step is not Step.APPEND] if refused else batch)

    async def _write(self, those: Sequence[Departure]) -> list[LedgerEntry | None]:
        changes = [
            RowChange(home, each.leg.before, row)
            for each in those
            if (home := each.home) is not None and (row := each.leg.row) is not None
        ]
        return await self._rows.write(changes)

    def _wrote(self, each: Departure, found: LedgerEntry | None) -> None:
        """Notes that a row was written: the copy that is appended says what the row says, no matter which process wrote
        it."""
        wanted = each.leg.row
        self._went_on(each, DepartureEvent.WRITTEN, found)
        row = each.leg.row
        if row is not None and row != wanted and isinstance(each.load, Parked):
            each.load = as_row_says(each.load, row)

    def _went_on(self, each: Departure, event: DepartureEvent, found: LedgerEntry | None = None) -> None:
        each.leg = follow(each.leg, event, self._clock.wall(), found)

    def _appended(self, those: Sequence[Departure]) -> None:
        now = self._clock.wall()
        for each in those:
            each.leg = follow(each.leg, DepartureEvent.APPENDED, now)

    # Appends.

    async def _park(self, batch: list[Departure]) -> None:
        """Appends to the delay service. An item that it refuses for good, such as for a delay beyond its bound, goes
        another way; where it has no room for all of them, some go in."""
        began = self._clock.wall()
        try:
            await self._parking.park([cast(Parked, each.load) for each in batch])
        except UserError:
            for each in batch:
                await self._park_alone(each)
        except Overloaded:
            if len(batch) == 1:
                raise
            half = len(batch) // 2
            await self._park(batch[:half])
            await self._park(batch[half:])
            return
        else:
            self._appended(batch)
        if self._tracing is not None:
            copies = [cast(Parked, each.load) for each in batch if each.leg.way is Way.PARK]
            self._tracing.parked(copies, began, self._clock.wall())
        soon: list[tuple[RowHome, LedgerEntry]] = [
            (each.home, each.leg.row)
            for each in batch
            if each.leg.way is Way.PARK and each.leg.step is Step.DONE and each.home and each.leg.row
        ]
        self._row_cache.keep(soon)

    async def _park_alone(self, each: Departure) -> None:
        parked = cast(Parked, each.load)
        try:
            await self._parking.park([parked])
        except UserError as error:
            if each.leg.way is Way.GUARD_SOONER:
                raise
            row, now = each.leg.row, self._clock.wall()
            each.leg = after = follow(each.leg, DepartureEvent.REFUSED, now)
            if after.way is Way.BURY:
                each.load = unparkable(parked, each.home, str(error), now, row)
            elif after.way is Way.GUARD_SOONER:  # the bound on delays may have been lowered since it was parked
                each.load = replace(parked, due=min(parked.due, now + FIRST_LOOK))
        else:
            self._appended((each,))

    async def _bury(self, batch: list[Departure]) -> None:
        await self._name_places([each for each in batch if not each.placed])
        letters = [cast(DeadLetter, each.load) for each in batch]
        no_room = frozenset(await self._environment.dead_letters.add(letters) or ())
        self._appended([each for each, letter in zip(batch, letters, strict=True) if letter.id not in no_room])
        for each in batch if no_room else ():
            if each.leg.step is Step.APPEND:
                self._went_on(each, DepartureEvent.REFUSED)

    async def _bury_again(self) -> None:
        """Looks for room, for ever, for letters of items that cannot run again from their source."""
        while True:
            await self._some_full.wait()
            self._some_full.clear()
            await asyncio.sleep(LOOK)
            full, self._full = self._full, []
            for each in full:
                each.leg = each.leg._replace(step=Step.APPEND)
                self.add(each)

    async def _name_places(self, batch: list[Departure]) -> None:
        """Says in each letter where its item lies, if its source has words for that."""
        together: defaultdict[tuple[str, str], dict[int, Departure]] = defaultdict(dict)
        for each in batch:
            letter, each.placed = cast(DeadLetter, each.load), True
            if letter.position >= 0:
                together[letter.tailer, letter.partition][letter.position] = each
        for (tailer, partition), those in together.items():
            for position, place in (await self._places(tailer, partition, [*those])).items():
                letter = cast(DeadLetter, those[position].load)
                if place not in letter.reason:
                    those[position].load = copy(letter, reason=f"{letter.reason} ({place})")

    async def _places(self, tailer: str, partition: str, positions: list[int]) -> dict[int, str]:
        """The places of items. A source may be anybody's code, and its words are a help: one that fails, or does not
        answer, holds up no letter."""
        try:
            source = self._placed(tailer)
            if source is None:
                return {}
            async with asyncio.timeout(PLACES_WITHIN):
                found = await source.places(partition, positions)
            return {position: str(found[position]) for position in positions if position in found}
        except Exception as error:
            log.warning("letters do not say where their items lie", tailer=tailer, reason=str(error) or repr(error))
            return {}

    def _placed(self, tailer: str) -> Placed | None:
        """The source of a tailer, to ask for places; None: it has no words for them."""
        config = self._origin(tailer)
        if config is None:
            return None
        kind = kind_of(str(config.source["kind"]))
        known = self._sources.get(tailer)
        if kind.capabilities.places and (known is None or known[0] != config.source):
            environment = copy(self._environment, tailer=tailer)
            self._sources[tailer] = known = config.source, kind.build(config.options_for(kind), environment)
        return known[1] if known is not None and kind.capabilities.places else None

    async def _store(self, batch: list[Departure]) -> None:
        loads = [cast(tuple[str, bytes, str], each.load) for each in batch]
        tenants = {id: tenant for id, _, tenant in loads if tenant}
        results = {id: result for id, result, _ in loads}
        if tenants:
            await self._environment.results.put_of(results, tenants)
        else:
            await self._environment.results.put(results)
        self._appended(batch)

    async def _note(self, batch: list[Departure]) -> None:
        """Notes the items that a gate dropped."""
        together: dict[Partition, list[Departure]] = defaultdict(list)
        for each in batch:
            together[each.partition].append(each)
        for part, those in together.items():
            drops = [cast(Drop, each.load) for each in those]
            await self._environment.drops.add(self._tailer, part.name, drops, part.frontier.position)
            self._appended(those)


def _size(departure: Departure) -> int:
    """The bytes of a write that are this departure's."""
    match departure.load:
        case Parked() | DeadLetter() as load:
            return len(load.payload)
        case (_, bytes() as result, _):
            return len(result)
        case Drop():
            return departure.size
        case _:
            return 0
