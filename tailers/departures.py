"""Stream items that leave for a store: the delay service, the dead letters, the results, the notes of what was dropped.
Only when that is durable may the frontier pass them (law 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..sdk.clock import Clock
from ..sdk.model.audit import Fate
from ..sdk.model.dead_letter import DeadLetter
from ..sdk.model.drop import Cause, Drop
from ..sdk.model.errors import UserError
from ..sdk.model.outcome import Outcome
from ..sdk.model.parked import Parked
from ..sdk.model.workload import DroppedBy, Ended, Extra
from ..sdk.source import StreamBatch
from .durable import DurableWriter
from .mapping import Mapped
from .parking import Parking
from .partition import Partition, chosen
from .pump import Counts
from .registry import Environment
from .rules.settlement import Action, History, Settlement

#: What is noted of a drop by a gate that its scheduler does not describe.
UNKNOWN = DroppedBy(0, "", "the scheduler named no gate")


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
    """The four ways out of one tailer. `departed` gets the tags of what is durable."""

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
        self._drops: DurableWriter[tuple[Partition, Drop], Tag] = DurableWriter(self._write_drops, self._dropped)

    def __len__(self) -> int:
        return len(self._parks) + len(self._dead) + len(self._results) + len(self._drops)

    @property
    def failing(self) -> str:
        """Why a store refuses; empty when none does."""
        return self._parks.why or self._dead.why or self._results.why or self._drops.why

    def tags(self) -> Iterator[Tag]:
        """Everything that is on its way into a store."""
        return chain(self._parks.tags(), self._dead.tags(), self._results.tags(), self._drops.tags())

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops that write."""
        return [self._parks.run(), self._dead.run(), self._results.run(), self._drops.run()]

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

    def drop(self, item: Departing) -> None:
        """A note of what an operator's gate dropped: by which version, who and why."""
        gate, position = item.ended.dropped_by or UNKNOWN, item.batch.positions[item.place]
        drop = Drop(position, position, 1, Cause.GATE, *gate, self._clock.wall())
        self._drops.add((item.partition, drop), len(item.batch.payloads[item.place]), item.tag(Fate.DROPPED))

    def bury_refused(self, part: Partition, batch: StreamBatch, mapped: Mapped) -> StreamBatch:
        """The batch without what its source cannot hand out as it is: that becomes dead letters."""
        for index, why in batch.refused.items():
            item = Departing(part, batch, mapped, index, self._clock.wall(), 0, Ended(Outcome.FATAL, why))
            self.bury(item, Settlement(Action.DEAD, 0.0, 0, 0, 0, why))
        return chosen(batch, [index for index in range(len(batch.positions)) if index not in batch.refused])

    async def _write_drops(self, batch: list[tuple[Partition, Drop]]) -> None:
        drops: dict[Partition, list[Drop]] = defaultdict(list)
        for part, drop in batch:
            drops[part].append(drop)
        for part, found in drops.items():
            await self._environment.drops.add(self._tailer, part.name, found, part.frontier.position)

    def _dropped(self, tags: list[Tag]) -> None:
        self._counts.dropped += len(tags)
        self._counts.settled += len(tags)
        self._departed(tags)

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
