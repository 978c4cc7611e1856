"""The path of an item: the parts that it passes through, and those of them that a fault hit. Pure rules over the faults
done, the journal, and the owners of streams over time.

An item is in its source's store, then with the tailer that took it, the scheduler, a worker and one of its executors,
and its outcome goes back the same way. A fault touches an execution when it hit one of these that held *that* item.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ...model.fence import FENCE_BITS
from .journal import Line

QUEUE = "queue"
STREAM = "stream"


#: Seconds for which a part that is whole again may still be catching up: sessions that were given up meanwhile,
#: connections that wait before they are tried again.
AFTERMATH = 1.0


class Reach(StrEnum):
    """The executions that a fault may touch."""

    NOBODY = "nobody"  # nothing that was accepted is there
    EVERY = "every"  # all pass through it
    QUEUED = "queued"  # those of the queue
    STREAMED = "streamed"  # those of streams
    FAILED = "failed"  # those of streams that came back from the delay service, having failed there once
    TAILED = "tailed"  # executions whose item one of its tailers' processes held
    RAN = "ran"  # executions in or under one of its processes


class Hit(NamedTuple):
    """One target that a fault broke, and the time, by the machine's monotonic clock, until it was whole, awake or ready
    again. `pids`: its processes where there are several of its kind; empty: all of them."""

    reach: Reach
    begin: float
    end: float
    pids: frozenset[int] = frozenset()


class DoneFault(NamedTuple):
    """One fault that was done. `back`: the time from which on anything could go on; 0: at once, elsewhere."""

    kind: str
    begin: float
    end: float
    hits: tuple[Hit, ...] = ()
    back: float = 0.0


class Tenure(NamedTuple):
    """A process was seen to own a stream under an epoch, first at this time. `place`: tailer/partition."""

    at: float
    place: str
    epoch: int
    pid: int


_REACH = {
    "store": Reach.EVERY,
    "node": Reach.EVERY,
    "scheduler": Reach.EVERY,
    "tailers": Reach.TAILED,
    "tailers:scheduler": Reach.TAILED,
    "tailers:store": Reach.TAILED,
    "worker": Reach.RAN,
    "worker:scheduler": Reach.RAN,
    "supervisor": Reach.RAN,
    "executor": Reach.RAN,
    "guard": Reach.RAN,
    "delay": Reach.FAILED,
    "tailers:delay": Reach.FAILED,
    "delay:store": Reach.FAILED,
    "gateway": Reach.NOBODY,
    "client:gateway": Reach.NOBODY,
    "gateway:store": Reach.NOBODY,
    "server": Reach.QUEUED,
    "kafka": Reach.STREAMED,
    "tailers:kafka": Reach.STREAMED,
    "redis": Reach.STREAMED,
    "tailers:redis": Reach.STREAMED,
}


def reach_of(target: str) -> Reach:
    """The reach of a part, a wire or a process that a plan names; numbers of parts do not matter."""
    return _REACH[re.sub(r"-\d+", "", target)]


#: Seconds that the time in a stream's fence may be ahead of its hand-out, at most (takeover/epoch.py), and one more.
AHEAD = 7


class Owners:
    """Knows the tailer process that held an execution, by the time in its fence, as far as it was seen."""

    def __init__(self, tenures: Iterable[Tenure] = ()) -> None:
        self._by_place: dict[str, list[Tenure]] = {}
        for each in sorted(tenures):
            self._by_place.setdefault(each.place, []).append(each)

    def held(self, start: Line, until: float) -> frozenset[int] | None:
        """The process that held an execution, from the time of its fence on, which may be AHEAD of the hand-out. None:
        not known, or the stream changed hands since, and any of its owners may have caused that."""
        place = start.id.rpartition("/")[0]
        tenures = self._by_place.get(place) or self._by_place.get(f"{place.partition('/')[0]}/")
        told = start.fence >> FENCE_BITS
        epochs = [each.epoch for each in tenures or () if each.epoch <= told]
        if not tenures or not epochs:
            return None
        epoch = max([each for each in epochs if each <= told - AHEAD], default=min(epochs))
        pids = frozenset(each.pid for each in tenures if each.epoch >= epoch and each.at <= until)
        return pids if len(pids) == 1 else None


class PathExecution(NamedTuple):
    """One execution as the rule sees it. `taken`: nothing touched it before that; `again`: the item had been started
    before; `tailers`: the process that had it from its stream, None where that is not known."""

    source: str
    start: Line
    taken: float
    again: bool
    tailers: frozenset[int] | None = None


def taken(source: str, start: Line, put: float, lease: float, wall: float) -> float:
    """The time from which on a fault may have touched an execution: its item was taken from its source then, or soon
    after.
    A queue's fences are the times of claims, in microseconds of the wall clock, or a little more; a stream's say
    nothing, and somebody may have had an item for a lease before it starts, but not before it was put in."""
    if source == QUEUE and wall:
        return min(start.at, start.fence / 1e6 - wall) - AFTERMATH
    return max(min(put, start.at) - AFTERMATH, start.at - lease) if put else start.at - lease


def _tailed(hit: Hit, run: PathExecution) -> bool:
    return not hit.pids or run.tailers is None or not hit.pids.isdisjoint(run.tailers)


def _ran(hit: Hit, run: PathExecution) -> bool:
    return not hit.pids or run.start.pid in hit.pids or run.start.parent in hit.pids


_ON_PATH: dict[Reach, Callable[[Hit, PathExecution], bool]] = {
    Reach.NOBODY: lambda hit, run: False,
    Reach.EVERY: lambda hit, run: True,
    Reach.QUEUED: lambda hit, run: run.source == QUEUE,
    Reach.STREAMED: lambda hit, run: run.source == STREAM,
    Reach.FAILED: lambda hit, run: run.source == STREAM and run.again,
    Reach.TAILED: _tailed,
    Reach.RAN: _ran,
}


def on_path(hit: Hit, run: PathExecution) -> bool:
    """Whether the execution passed through the target that was broken."""
    return _ON_PATH[hit.reach](hit, run)


class DoneFaults:
    """The faults of a run, sorted by their begin; their numbers are those of the list given."""

    def __init__(self, faults: Sequence[DoneFault]) -> None:
        self._all = faults
        self._order = sorted(range(len(faults)), key=lambda number: faults[number].begin)
        self._begins = [faults[number].begin for number in self._order]
        self._longest = max((fault.end - fault.begin for fault in faults), default=0.0)

    def latest(self, run: PathExecution, begun: float) -> int | None:
        """Number of the last fault that hit something on the execution's path by `begun`, and was not over when the
        item was taken."""
        for at in range(bisect_right(self._begins, begun) - 1, -1, -1):
            if self._begins[at] + self._longest < run.taken:
                return None
            number = self._order[at]
            if any(hit.begin <= begun and hit.end >= run.taken and on_path(hit, run) for hit in self._all[number].hits):
                return number
        return None

    def since(self, run: PathExecution, ran_on: float) -> int | None:
        """Number of the last fault that hit an execution's path after it started and before the item ran on."""
        for at in range(bisect_right(self._begins, ran_on) - 1, -1, -1):
            if self._begins[at] <= run.start.at:
                return None
            number = self._order[at]
            if self._begins[at] < ran_on and any(on_path(hit, run) for hit in self._all[number].hits):
                return number
        return None
