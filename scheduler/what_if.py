"""Play: a recording's arrivals given to the real core in virtual time, under some quotas. Pure: no clock, no file.

One session brings the recorded items, one worker with the recorded pools runs them, and each item holds its place for
as long as such items did. The items that start, their order and how late they are, are the core's own decision.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle, islice, repeat

from ..model.function_spec import FunctionSpec
from ..model.lease import LeaseSizes
from ..model.limits import Quota
from ..model.outcome import Outcome
from ..model.workload import FLIGHT_ITEMS, INDEX_BITS, Ended, Flight, Kind, Outcomes
from .config import SchedulerConfig
from .core import Core
from .recording import Recording
from .rules.flow import ID, KIND
from .rules.placement import PoolLimits
from .sessions import Assignment, WorkerSession

#: Seconds that the run of an item takes of whose function none ended in the recording.
UNKNOWN_RUN = 0.1
#: Seconds for which what is left is played on behind the end, for each second of the recording; and at least.
BEHIND, LEAST_BEHIND = 1.0, 600.0
#: Seconds between samples of what waits; items of a flow that one looks at.
SAMPLE, LOOKED_AT = 1.0, 200
#: Items of a kind that are with the core and have not started; the others wait in their source, as at a tailer.
WAITING = 2_000

#: An item's id is the tick in which it arrived, and in so many bits the number of its kind.
KIND_BITS = 20
KIND_MASK = (1 << KIND_BITS) - 1

#: A function and a tenant.
Who = tuple[str, str]


@dataclass(slots=True)
class Played:
    """Fate of one ⟨function, tenant⟩.

    delays     start delays in ticks → how many items
    waited     item-seconds that its items waited, as sampled; `limited`: of those, behind a limit without room
    ticks      for how many of them its items held places
    last_end   when the last of its items ended, seconds since the beginning
    """

    arrived: int = 0
    ended: int = 0
    delays: Counter[int] = field(default_factory=Counter)
    waited: float = 0.0
    limited: float = 0.0
    ticks: int = 0
    last_end: float = 0.0

    def add(self, other: Played) -> None:
        """Another kind of the same function and tenant."""
        self.arrived += other.arrived
        self.ended += other.ended
        self.delays.update(other.delays)
        self.waited += other.waited
        self.limited += other.limited
        self.ticks += other.ticks
        self.last_end = max(self.last_end, other.last_end)

    def delay(self, share: float, tick: float) -> float:
        """The start delay that this share of its items did not exceed, seconds."""
        left = math.ceil(share * self.delays.total())
        for ticks, count in sorted(self.delays.items()):
            left -= count
            if left <= 0:
                return ticks * tick
        return 0.0


@dataclass(slots=True)
class PlayResult:
    """All of it. `places` are those of all pools; `seconds` is how long the recording is, `tick` how fine times are."""

    tick: float
    seconds: float
    places: int
    by: dict[Who, Played]

    @property
    def used(self) -> float:
        """The share of all places that was held while the recording lasted, or as long as it took if that is more."""
        longest = max([self.seconds, *(each.last_end for each in self.by.values())])
        return sum(each.ticks for each in self.by.values()) * self.tick / max(1e-9, self.places * longest)


def played(
    recording: Recording,
    quotas: Sequence[Quota],
    functions: Iterable[FunctionSpec],
    tell: Callable[[float], None] = lambda share: None,
) -> PlayResult:
    """Plays a recording under these quotas. `tell` hears how much of it is done."""
    return _Play(recording, quotas, functions).run(tell)


class _Play:
    """One play. Times are seconds since the recording began, in whole ticks."""

    def __init__(self, recording: Recording, quotas: Sequence[Quota], functions: Iterable[FunctionSpec]) -> None:
        self._recording = recording
        self._tick = recording.tick
        self._sizes = LeaseSizes()
        config = SchedulerConfig(lane_items=1_000_000, calls=1_000_000, slow_start=0.0)
        self._core = Core(config, self._sizes, ready=False)
        self._tailer = self._core.attach_tailer("recording", "recording", 0.0, patient=True)
        self._runs = [self._spans(kind) for kind in range(len(recording.kinds))]
        self._used = [self._amounts(kind) for kind in range(len(recording.kinds))]
        self._measuring = any(quota.units for quota in quotas)
        self._numbers = {kind: number for number, kind in enumerate(recording.kinds)}
        self._of = [Played() for _ in recording.kinds]
        self._source: dict[int, deque[tuple[int, int]]] = {}  # of each kind: tick of arrival, how many
        self._waiting: Counter[int] = Counter()  # with the core, by kind
        self._look: dict[int, None] = {}  # kinds of which something may be brought
        self._ends: dict[int, tuple[list[int], list[int]]] = {}  # tick → refs at the worker, and the kinds of these
        self._due: list[int] = []
        self._flights = 0
        self._asks = 0
        specs = {spec.name: spec for spec in functions}
        names = {kind.function for kind in recording.kinds}
        known = [specs.get(name) or FunctionSpec(name) for name in sorted(names)]
        self._core.apply((), quotas, known, 1, 0.0)
        self._worker = self._attach(known)
        self.places = sum(pool.places for pool in recording.pools)

    def _attach(self, known: Sequence[FunctionSpec]) -> WorkerSession:
        """Attaches one worker that stands for all of them: a pool of it for each of theirs. Functions that none of the
        pools ran at the end of the recording may run in any of them."""
        pools = self._recording.pools
        ran = {name for pool in pools for name in pool.functions}
        homeless = tuple(spec.name for spec in known if spec.name not in ran)
        worker = self._core.attach_worker("worker", "worker", 0.0)
        limits = [
            PoolLimits(f"{number} {pool.name}", (*pool.functions, *homeless), pool.places, pool.places)
            for number, pool in enumerate(pools)
        ]
        self._ask(worker, 0.0)
        self._core.worker_connected(worker, known, limits, 0.0)
        return worker

    def _ask(self, worker: WorkerSession, now: float) -> None:
        self._asks += 1
        self._core.lease_requested(worker, self._asks, now)

    def _spans(self, kind: int) -> Iterator[int]:
        """Yields the ticks that one item of a kind after the other runs, as the recorded ones did, in their order,
        again and again."""
        recording = self._recording
        runs = recording.runs.get(kind) or [
            run
            for other, found in recording.runs.items()
            if recording.kinds[other].function == recording.kinds[kind].function
            for run in found
        ]
        ticks = [(count, max(1, round(span / self._tick))) for count, span in runs or [(1, UNKNOWN_RUN)] if count]
        return cycle(chain.from_iterable([repeat(span, count) for count, span in ticks]))

    def _amounts(self, kind: int) -> dict[tuple[str, str], Iterator[float]]:
        """Amounts that one run of a kind after the other uses, by downstream and unit, again and again in the recorded
        order."""
        return {
            place: cycle(chain.from_iterable([repeat(amount, count) for count, amount in found]))
            for place, found in self._recording.units.get(kind, {}).items()
        }

    def run(self, tell: Callable[[float], None]) -> PlayResult:
        recording, tick = self._recording, self._tick
        arrivals = deque(recording.arrivals.items())
        last = max(recording.arrivals)
        until = last + int(max(LEAST_BEHIND, BEHIND * recording.seconds) / tick)
        beat = self._sizes.heartbeat / 4
        beat_at = sample_at = 0.0
        place = 0
        while place <= until and (arrivals or self._source or self._tailer.held.items):
            now = place * tick
            for number in self._ended_by(place):
                self._end(self._ends.pop(number), number * tick)
            while arrivals and arrivals[0][0] <= place:
                at, rows = arrivals.popleft()
                for kind, count in rows:
                    self._source.setdefault(kind, deque()).append((at, count))
                    self._look[kind] = None
                    self._of[kind].arrived += count
            self._push(now)
            if now >= beat_at:
                beat_at = now + beat
                self._ask(self._worker, now)
                self._core.tick(now, now)
                tell(min(1.0, place / max(1, last)))
            self._turn(place, now)
            if now >= sample_at:
                self._sample(SAMPLE)
                sample_at = now + SAMPLE
            nexts = [beat_at, sample_at]
            if self._core.next_at is not None:
                nexts.append(self._core.next_at)
            following = min(math.ceil(at / tick - 1e-9) for at in nexts)
            if arrivals:
                following = min(following, arrivals[0][0])
            if self._due:
                following = min(following, self._due[0])
            place = max(place + 1, following)
        return PlayResult(tick, recording.seconds, self.places, self._summed())

    def _ended_by(self, place: int) -> Iterator[int]:
        while self._due and self._due[0] <= place:
            yield heapq.heappop(self._due)

    def _end(self, ended: tuple[list[int], list[int]], now: float) -> None:
        refs, kinds = ended
        ends: dict[int, Ended] = {}
        if self._measuring:
            for ref, number in zip(refs, kinds, strict=True):
                if amounts := self._used[number]:
                    used = tuple([(*place, next(each)) for place, each in amounts.items()])
                    ends[ref] = Ended(Outcome.SUCCESS, used=used)
            refs = [ref for ref in refs if ref not in ends]
        self._core.report(self._worker, Outcomes(refs, ends), now, now)
        for number in kinds:
            each = self._of[number]
            each.ended += 1
            each.last_end = now
        self._tailer.succeeded = []

    def _push(self, now: float) -> None:
        """Pushes arrivals in flights; an item's id is the tick in which it arrived."""
        kinds: list[Kind] = []
        ids: list[int] = []
        look, self._look = self._look, {}
        for number in look:
            kind, source = self._recording.kinds[number], self._source[number]
            while source and (room := WAITING - self._waiting[number]) > 0:
                at, count = source.popleft()
                part = min(count, room)
                kinds += [kind] * part
                ids += [at << KIND_BITS | number] * part
                self._waiting[number] += part
                if part < count:
                    source.appendleft((at, count - part))
            if not source:
                del self._source[number]
        for first in range(0, len(kinds), FLIGHT_ITEMS):
            self._fly(kinds[first : first + FLIGHT_ITEMS], ids[first : first + FLIGHT_ITEMS], now)

    def _fly(self, kinds: list[Kind], ids: list[int], now: float) -> None:
        size = len(kinds)
        self._flights += 1
        number = self._flights
        flight = Flight(number, number, kinds, ids, [b""] * size, [1] * size)  # type: ignore[arg-type]
        self._core.push(self._tailer, flight, 0, math.inf, now)
        if self._tailer.ended:
            raise AssertionError(f"the core handed back {len(self._tailer.ended)} items of a play")

    def _turn(self, place: int, now: float) -> None:
        self._core.turn(now, now)
        self._core.speaking.clear()
        while (found := self._core.assignment(self._worker, now)) is not None:
            self._start(found[0], place)

    def _start(self, made: Assignment, place: int) -> None:
        of, runs, waiting, source, ends = self._of, self._runs, self._waiting, self._source, self._ends
        for ref, item in enumerate(made.items, made.flight << INDEX_BITS):
            id: int = item[ID]  # type: ignore[assignment]
            number = id & KIND_MASK
            waiting[number] -= 1
            if number in source:
                self._look[number] = None
            span = next(runs[number])
            each = of[number]
            each.delays[place - (id >> KIND_BITS)] += 1
            each.ticks += span
            end = place + span
            found = ends.get(end)
            if found is None:
                found = ends[end] = ([], [])
                heapq.heappush(self._due, end)
            found[0].append(ref)
            found[1].append(number)

    def _summed(self) -> dict[Who, Played]:
        found: dict[Who, Played] = {}
        for kind, each in zip(self._recording.kinds, self._of, strict=True):
            if each.arrived:
                found.setdefault((kind.function, kind.tenant), Played()).add(each)
        return found

    def _sample(self, seconds: float) -> None:
        """Notes which items wait now, and behind a limit or for a place."""
        limited: set[Kind] = set()
        for function in self._core.roster.functions.values():
            for flow in function.all_flows:
                if flow.items:
                    looked_at = [item[KIND] for item in islice(flow.items, LOOKED_AT)]
                    each = seconds * len(flow.items) / len(looked_at)
                    for kind, count in Counter(looked_at).items():
                        self._wait(kind, count * each, limited=flow.asleep is not None)
                    if flow.asleep is not None:
                        limited.update(looked_at)
        for number, source in self._source.items():
            kind = self._recording.kinds[number]
            self._wait(kind, sum([count for _, count in source]) * seconds, limited=kind in limited)

    def _wait(self, kind: Kind, seconds: float, *, limited: bool) -> None:
        each = self._of[self._numbers[kind]]
        each.waited += seconds
        each.limited += seconds if limited else 0.0
