"""Stream items that leave for a store: the delay service, the dead letters, the results. Only when that is durable may
the frontier pass them (law 3)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..sdk.clock import Clock
from ..sdk.model.audit import Fate
from ..sdk.model.dead_letter import DeadLetter
from ..sdk.model.errors import UserError
from ..sdk.model.outcome import Outcome
from ..sdk.model.parked import Parked
from ..sdk.model.workload import Ended, Extra
from ..sdk.source import StreamBatch
from .durable import DurableWriter
from .mapping import Mapped
from .parking import Parking
from .partition import Partition
from .pump import Counts
from .registry import Environment
from .rules.settlement import History, Settlement


class Departing(NamedTuple):
    """An item that ended: its place in its flight, when that was pushed (wall clock), its fence, and how it ended."""

    partition: Partition
    batch: StreamBatch
    mapped: Mapped
    place: int  # its index in the batch
    pushed_at: float
    fence: int
    ended: Ended

    def tag(self, fate: Fate) -> Tag:
        """What is settled when it is in its store."""
        return Tag(self.partition, self.batch.positions[self.place], len(self.batch.payloads[self.place]), fate)

    def history(self, now: float) -> History:
        """What happened to it before this end: in this epoch, else when it was parked. `now`: wall clock seconds."""
        trouble = self.partition.troubles.get(self.batch.positions[self.place])
        parked = self.mapped.parked.get(self.place)
        late = max(0.0, now - (self.pushed_at if parked is None else parked.due))
        if trouble is not None:
            return trouble._replace(late=late)
        if parked is not None:
            return History(parked.attempt, parked.crashes, parked.throttles, late)
        return History(late=late)


class Tag(NamedTuple):
    """An item on its way into a store: settled when it is there."""

    partition: Partition
    position: int
    size: int
    fate: Fate


class Departures:
    """The three ways out of one tailer. `departed` gets the tags of what is durable."""

    def __init__(
        self,
        tailer: str,
        environment: Environment,
        parking: Parking,
        clock: Clock,
        counts: Counts,
        departed: Callable[[list[Tag]], None],
    ) -> None:
        self._tailer = tailer
        self._environment = environment
        self._parking = parking
        self._clock = clock
        self._counts = counts
        self._departed = departed
        self._parks: DurableWriter[Parked, Tag] = DurableWriter(self._write_parks, self._parked)
        self._dead: DurableWriter[DeadLetter, Tag] = DurableWriter(environment.dead_letters.add, self._died)
        self._results: DurableWriter[tuple[str, bytes], Tag] = DurableWriter(
            lambda batch: environment.results.put(dict(batch)), self._stored
        )

    def __len__(self) -> int:
        return len(self._parks) + len(self._dead) + len(self._results)

    @property
    def failing(self) -> str:
        """Why a store refuses; empty when none does."""
        return self._parks.why or self._dead.why or self._results.why

    def tags(self) -> Iterator[Tag]:
        """Everything that is on its way into a store."""
        return chain(self._parks.tags(), self._dead.tags(), self._results.tags())

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that write."""
        return [self._parks.run(), self._dead.run(), self._results.run()]

    def park(self, item: Departing, settlement: Settlement) -> None:
        """To the delay service, until it is due again. What was parked before keeps its id, origin and first sight."""
        _, batch, mapped, index, pushed_at, fence, ended = item
        former = mapped.parked.get(index)
        extra = mapped.extras.get(index) or Extra()
        parked = Parked(
            tailer=self._tailer if former is None else former.tailer,
            id=mapped.ids[index],
            kind=mapped.kinds[index],
            payload=batch.payloads[index],
            due=self._clock.wall() + settlement.delay,
            first_seen=pushed_at if former is None else former.first_seen,
            attempt=settlement.failed + 1,
            crashes=settlement.crashes,
            throttles=settlement.throttles,
            fence=fence,
            reason=settlement.reason,
            key=extra.key,
            headers=mapped.headers[index],
            expires_at=extra.expires_at,
            progress=ended.progress or extra.progress,
        )
        self._parks.add(parked, len(parked.payload), item.tag(Fate.DELAYED))

    def bury(self, item: Departing, settlement: Settlement) -> None:
        """To the dead letters, with the reason."""
        _, batch, mapped, index, pushed_at, _, ended = item
        former = mapped.parked.get(index)
        extra = mapped.extras.get(index) or Extra()
        letter = DeadLetter(
            id=mapped.ids[index],
            tailer=self._tailer if former is None else former.tailer,
            kind=mapped.kinds[index],
            payload=batch.payloads[index],
            outcome=Outcome(ended.outcome).name.lower(),
            reason=settlement.reason,
            attempts=settlement.failed,
            crashes=settlement.crashes,
            first_seen=pushed_at if former is None else former.first_seen,
            died_at=self._clock.wall(),
            key=extra.key,
            headers=mapped.headers[index],
            progress=ended.progress or extra.progress,
        )
        self._dead.add(letter, len(letter.payload), item.tag(Fate.DEAD))

    def store(self, item: Departing, result: bytes) -> None:
        """A success whose return value is kept."""
        self._results.add((item.mapped.ids[item.place], result), len(result), item.tag(Fate.SUCCEEDED))

    async def _write_parks(self, items: list[Parked]) -> None:
        """What the delay service refuses for good (a delay beyond its bound) is a dead letter."""
        park = self._parking.park
        try:
            await park(items)
        except UserError:
            for item in items:
                try:
                    await park([item])
                except UserError as error:
                    await self._environment.dead_letters.add([self._refused(item, str(error))])

    def _refused(self, item: Parked, why: str) -> DeadLetter:
        return DeadLetter(
            id=item.id,
            tailer=item.tailer,
            kind=item.kind,
            payload=item.payload,
            outcome=Outcome.RETRY.name.lower(),
            reason=f"{item.reason} (cannot be parked: {why})",
            attempts=item.attempt - 1,
            crashes=item.crashes,
            first_seen=item.first_seen,
            died_at=self._clock.wall(),
            key=item.key,
            headers=item.headers,
            progress=item.progress,
        )

    def _parked(self, tags: list[Tag]) -> None:
        self._counts.parked += len(tags)
        self._departed(tags)

    def _died(self, tags: list[Tag]) -> None:
        self._counts.dead += len(tags)
        self._departed(tags)

    def _stored(self, tags: list[Tag]) -> None:
        self._counts.settled += len(tags)
        self._departed(tags)
