"""Heights of the embedded stores (high-water marks): noted outside the data directory, compared with that note at
opening, and with the memory of each scheduler that is met."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping

from ..foundation.clock import Clock
from ..model.height import Height, lacks, was_set_back
from ..model.reopening import Trouble
from ..stores.heights import QUEUE, STATE
from ..stores.queue.sqlite.queue import SqliteQueue
from ..stores.remembered_heights import PERIOD, RememberedHeights
from ..stores.sqlite.file import SqliteFile
from ..stores.sqlite.identity import log_height, state_height
from ..stores.state.sqlite_restored import supersede
from ..stores.trusted_time import TrustedTime

#: The names by which the databases are asked (stores/heights.py), and their files.
_FILES = {QUEUE: "queue.db", STATE: "state.db"}
#: Seconds for which operators are told of stores that were set back.
TOLD = 3600.0


class NotedHeights:
    """Heights of the open databases in one data directory, by the names of their files; implements
    `stores.heights.Heights`. `outside` None: nothing is remembered there. `hold_off` stops hand-outs for a while, where
    some databases were set back."""

    def __init__(
        self,
        outside: RememberedHeights | None,
        queues: Mapping[str, SqliteQueue],
        logs: Iterable[SqliteFile],
        state: SqliteFile | None,
        hold_off: Callable[[Iterable[str]], Awaitable[None]],
        clock: Clock,
        trusted: TrustedTime,
    ) -> None:
        self._outside, self._clock, self._trusted = outside, clock, trusted
        self._queues, self._logs, self._state = queues, tuple(logs), state
        self._hold_off, self._asking = hold_off, asyncio.Lock()
        self._opened: dict[str, Height] = {}
        self._opened_at = 0.0  # by the wall clock, however far back that was set since
        self._began = 0.0  # the same by the monotonic one
        self._noted: Mapping[str, Height] = {}
        self._noted_at = -math.inf
        self._trouble: tuple[float, Trouble] | None = None

    async def _now(self) -> dict[str, Height]:
        found = {name: await queue.height() for name, queue in [*self._queues.items()]}
        found |= {log.path.name: await log.read(log_height) for log in self._logs}
        if self._state is not None:
            found[self._state.path.name] = await self._state.read(state_height)
        return found

    async def opened(self) -> None:
        """Compares the databases with the note outside. Called when they are open and nothing was handed out yet."""
        self._opened_at, self._began = self._clock.wall(), self._clock.monotonic()
        self._opened = await self._now()
        remembered = {} if self._outside is None else await asyncio.to_thread(self._outside.read)
        behind = {
            name: remembered[name] for name, now in self._opened.items() if was_set_back(now, remembered.get(name))
        }
        if behind:
            await self._found(behind)

    async def name(self, store: str) -> str:
        return known.store if (known := self._opened.get(_FILES.get(store, ""))) else ""

    async def seen(self, store: str, remembered: Height) -> bool:
        file = _FILES.get(store, "")
        async with self._asking:
            self._follow_clock()
            now = (await self._now()).get(file)
            if now is None or not lacks(self._opened[file], self._opened_at, now, remembered):
                return False
            await self._found({file: remembered})
            return True

    def _follow_clock(self) -> None:
        """Moves the moment of opening back with the wall clock: numbers given since the clock was set back lie below
        the moment as it was told then."""
        self._opened_at = min(self._opened_at, self._clock.wall() - (self._clock.monotonic() - self._began))

    async def _found(self, behind: Mapping[str, Height]) -> None:
        await self._hold_off(behind)
        await self._rise(behind)
        self._opened |= behind

    async def _rise(self, remembered: Mapping[str, Height]) -> None:
        """Raises the numbers of databases that were set back above those remembered, where the clock alone does not: it
        may have been set back with them."""
        for name, queue in [*self._queues.items()]:
            if name in remembered:
                await queue.rise(remembered[name].highest)
        state = self._state
        if state is not None and not remembered.keys() <= self._queues.keys():  # no stream rests in a queue
            before, wall = remembered.get(state.path.name), self._clock.wall()
            await state.write(lambda connection: supersede(connection, wall, before.highest if before else 0))

    def tell(self, names: Iterable[str], quiet: float) -> str:
        """Keeps a trouble for operators: these databases were set back. Returns its text."""
        what = (
            f"{', '.join(sorted(names))}: set back to an earlier state, with the stamp beside it. Everything stored "
            "since then is lost. Items handed out since may still run: nothing is handed out for "
            f"{quiet:.0f} s (the lease of a source)"
        )
        todo = "find out why the disk was set back; workloads submitted since then have to be submitted again"
        self._trouble = self._clock.monotonic(), Trouble("stores", self._clock.wall(), what, todo=todo)
        return what

    def troubles(self) -> list[Trouble]:
        """The trouble found at the opening or later, told for an hour."""
        if self._trouble is None or self._clock.monotonic() - self._trouble[0] > TOLD:
            return []
        return [self._trouble[1]]

    async def note(self, *, now: bool = False) -> None:
        """Notes the heights, if they have risen and were not noted just before (`now`: even so). Raises OSError."""
        self._follow_clock()
        moment = self._clock.monotonic()
        if self._outside is None or (moment < self._noted_at + PERIOD and not now):
            return
        heights = await self._now()
        if heights != self._noted or now:
            await asyncio.to_thread(self._outside.write, heights, self._trusted.seconds())
            self._noted = heights
        self._noted_at = moment
