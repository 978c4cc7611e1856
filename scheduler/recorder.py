"""Recorder: arrivals at a scheduler and their run times, in lines: metadata alone, by kind and tick.

A line is JSON. The first is the header: the version of the format, when it began, and seconds of a tick. Each further
one is a frame of about a second:

    kinds  new ones: function, priority, collection, tenant; named by their place among all kinds so far
    pools  all of them, when they changed: worker, pool, functions, how many items it may have
    in     arrivals: tick, kind, how many
    back   of those, handed back unstarted since: kind, how many; they will come again
    out    ends: kind, how many, and their time at workers together in milliseconds
    units  what runs said that they used: kind, downstream, unit, of how many runs, and how much of it together
    lost   items that were not recorded: there were too many kinds or rows
    at     seconds since the beginning
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..model.workload import INDEX_BITS, Kind
from .rules.flow import KIND, Item
from .sessions import WorkerSession

#: The version of the format, and its name in the header.
VERSION, FORMAT = 1, "tailrace_recording"
#: Seconds of a tick, and of a frame; recordings at a time.
TICK, FRAME, MOST_RECORDERS = 0.02, 1.0, 4
#: Kinds of a recording, rows of a frame, characters of a label.
MOST_KINDS, MOST_ROWS, LONGEST = 50_000, 50_000, 200


class Recorder:
    """One recording. Invariant: what it holds is bounded, also when nobody asks for a frame."""

    def __init__(self, scheduler: str, now: float, wall: float, salt: str = "") -> None:
        told = {FORMAT: VERSION, "scheduler": scheduler, "began": wall, "tick": TICK, "hashed": bool(salt)}
        self.header = json.dumps(told).encode()
        self._salt = salt.encode()
        self._began = now
        self._numbers: dict[Kind, int] = {}
        self._fresh: list[Kind] = []
        self._pools: list[Any] = []
        self._in: dict[tuple[int, int], int] = {}
        self._back: Counter[int] = Counter()
        self._out: dict[int, list[float]] = {}
        self._units: dict[tuple[int, str, str], list[float]] = {}
        self._lost = 0

    def arrived(self, kinds: Iterable[Kind], now: float) -> None:
        """Counts a flight that came."""
        tick = int((now - self._began) / TICK)
        for kind, count in Counter(kinds).items():
            number = self._number(kind)
            if number is None or ((tick, number) not in self._in and len(self._in) >= MOST_ROWS):
                self._lost += count
            else:
                self._in[tick, number] = self._in.get((tick, number), 0) + count

    def went_back(self, kinds: Iterable[Kind]) -> None:
        """Counts items that were handed back unstarted."""
        for kind, count in Counter(kinds).items():
            if (number := self._numbers.get(kind)) is not None:
                self._back[number] += count

    def ended(self, worker: WorkerSession, refs: Sequence[int], items: Sequence[Item], now: float) -> None:
        """Counts items that are out no longer."""
        flights = worker.flights
        for ref, item in zip(refs, items, strict=True):
            if (number := self._number(item[KIND])) is not None:
                sums = self._out.setdefault(number, [0, 0.0])
                sums[0] += 1
                sums[1] += max(0.0, now - flights[ref >> INDEX_BITS].at)

    def used(self, kind: Kind, used: Iterable[tuple[str, str, float]]) -> None:
        """Counts the units that a run reported."""
        if (number := self._number(kind)) is None:
            return
        for downstream, unit, amount in used:
            place = (number, downstream[:LONGEST], unit[:LONGEST])
            if 0 <= amount < math.inf and (place in self._units or len(self._units) < MOST_ROWS):
                sums = self._units.setdefault(place, [0, 0.0])
                sums[0] += 1
                sums[1] += amount

    def frame(self, workers: Iterable[WorkerSession], now: float) -> bytes:
        """The line of all that came and ended since the last frame."""
        told: dict[str, Any] = {"at": round(now - self._began, 3)}
        pools = [
            [worker.name, pool.name, sorted(pool.functions), pool.full]
            for worker in workers
            if worker.able
            for pool in worker.pools.values()
            if not pool.alone
        ]
        if pools != self._pools:
            told["pools"] = self._pools = pools
        told["kinds"] = [self._shown(kind) for kind in self._fresh]
        told["in"] = [[tick, number, count] for (tick, number), count in self._in.items()]
        told["back"] = [[number, count] for number, count in self._back.items()]
        told["out"] = [[number, count, round(took * 1e3, 3)] for number, (count, took) in self._out.items()]
        told["units"] = [[*place, count, amount] for place, (count, amount) in self._units.items()]
        told["lost"] = self._lost
        self._units = {}
        self._fresh, self._in, self._back, self._out, self._lost = [], {}, Counter(), {}, 0
        return json.dumps({name: value for name, value in told.items() if value or name == "at"}).encode()

    def _number(self, kind: Kind) -> int | None:
        number = self._numbers.get(kind)
        if number is None and len(self._numbers) < MOST_KINDS:
            number = self._numbers[kind] = len(self._numbers)
            self._fresh.append(kind)
        return number

    def _shown(self, kind: Kind) -> list[Any]:
        tenant = kind.tenant[:LONGEST]
        if tenant and self._salt:
            tenant = hmac.new(self._salt, kind.tenant.encode(), hashlib.sha256).hexdigest()[:16]
        return [kind.function, kind.priority, kind.collection[:LONGEST], tenant]
