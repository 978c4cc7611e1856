"""The queue on SQLite: submissions, claims and settlements as statements over batches, in one writer thread.

Every statement takes one step, however many rows it touches (see stores/sqlite/file.py). A look that finds nothing due
needs no statement, because a lower bound of each lane's next trigger is kept in memory. The steps of each method are in
files of their own in this folder.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from ....foundation.clock import SYSTEM_CLOCK, Clock, boot
from ....model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ....model.demand import Demand
from ....model.errors import InvalidRequest, NotConnected
from ....model.height import Height
from ....model.search import Search
from ....model.tries import Try
from ....model.workload import Headers
from ...config import StoresConfig
from ...jobs.sqlite.advance import advance
from ...jobs.sqlite.settling import settle_with_jobs
from ...sqlite.file import AskAgain, SqliteFile
from ...sqlite.identity import note_height
from ...trusted_time import TrustedTime
from ..admission import check, check_changes
from ..ageing import folded
from ..claim_yielding import ClaimYielding
from ..counts import Held
from ..gates import ShutLanes
from ..history import ROW, kept
from ..ids import first_id, id_number, id_text
from ..lease_clock import STEP
from ..lifecycle import LEASED, TERMINAL, WAITING
from ..queue import Ageing, ItemContent, NewItem, Page, Reschedule, Status, Submitted, Tally
from ..search_bounds import keys_of, kinds_of, span
from ..sweep_grace import SweepGrace
from . import reports
from .ageing import ages
from .claim import claim
from .clocks import close_clock, keep_time, note_wall, open_clock
from .collect import SqliteCollecting
from .find import COLUMNS, find
from .forgetting import forget_ended
from .items import peek, reschedule
from .leases import end_leases, renew
from .memory import Memory
from .rows import IDS, SCHEMA, json_text, own_keys
from .settle import cancel, end, succeed
from .submit import submit
from .tally import Count, count_due

__all__ = ["SCHEMA", "SqliteQueue"]

_LOG = logging.getLogger("tailrace.stores")

#: Most items of a write that delays no other: two milliseconds' worth.
LIGHT = 256
#: Most ended rows that one sweep removes, rows of one read, and reads: they bound how long it delays others.
SWEEP, SWEEP_LOOK, SWEEP_READS = 2000, 20_000, 10


class SqliteQueue:
    """A Queue in one SQLite file. The owner opens and closes the file, calls `open` after the file's, and `sweep` now
    and then."""

    def __init__(
        self,
        file: SqliteFile,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        boot: Callable[[], str] = boot,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._file = file
        self._boot = boot()
        self.trusted = trusted or TrustedTime(clock, boot=boot)  # the time by which old jobs and ended items go
        self._config = config or StoresConfig()
        self._clock = clock
        self._memory = Memory(ClaimYielding(self._config.busy_share), self._config.key_rule)
        self._keeps_time = False  # the file's lease clock belongs to this run
        self._swept, self._sweep_grace = 0, SweepGrace()
        self._tallying = asyncio.Lock()
        self.quiet_until = -math.inf  # by the monotonic clock; until then nothing is leased
        self._outbox = SqliteCollecting(self._config.max_waiting, self._config.max_payload)
        file.on_rollback(self._memory.reload)
        file.on_rollback(self._outbox.again)
        file.on_close(self._note_close)

    async def open(self) -> None:
        """Reads the memory from the tables. Harmless when open."""

        def read(connection: sqlite3.Connection) -> float:
            own_keys(connection)
            self._memory.reload(connection)
            self._outbox.again(connection)
            durable = self._config.synchronous == "FULL"
            quiet = open_clock(connection, self._memory, self._boot, self._now(), self._monotonic(), durable=durable)
            self._keeps_time = True
            return quiet / 1e6

        if quiet := await self._file.write(read):
            self.quiet_until = max(self.quiet_until, self._clock.monotonic() + quiet)
            _LOG.warning(
                "%s: the machine went down, and not every write was synced: nothing is handed out for %.0f s (the "
                "longest lease)",
                self._file.path,
                quiet,
            )

    async def close(self) -> None:
        """Forgets the memory, which must be read again before the next use. The file stays open: it belongs to the
        owner."""
        self._memory.loaded = False

    def _note_close(self, connection: sqlite3.Connection) -> None:
        if self._keeps_time:
            close_clock(connection, self._now(), self._memory.ahead)
            self._keeps_time = False

    async def height(self) -> Height:
        """The highest fence that was committed."""
        memory = self._opened()
        return await self._file.write(lambda connection: memory.height)

    async def rise(self, above: int) -> None:
        """Makes all later fences higher than this one."""
        memory = self._opened()

        def raise_it(connection: sqlite3.Connection) -> None:
            memory.fence = max(memory.fence, above)
            note_height(connection, memory.fence)

        await self._file.write(raise_it)

    @property
    def file(self) -> SqliteFile:
        """The file of the queue; jobs are in it too."""
        return self._file

    @property
    def bounds(self) -> tuple[int, int]:
        """Most workloads that may wait, and most bytes of a payload."""
        return self._config.max_waiting, self._config.max_payload

    def memory(self) -> Memory:
        """The writer's memory. Raises NotConnected when the queue is closed."""
        return self._opened()

    def now(self) -> int:
        """µs of the wall clock."""
        return self._now()

    def _monotonic(self) -> int:
        return int(self._clock.monotonic() * 1e6)

    def _keep_time(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Returns µs of the wall clock and of the monotonic one. The store follows the wall clock if it was set."""
        wall, monotonic = self._now(), self._monotonic()
        keep_time(connection, self._memory, self._boot, wall, monotonic)
        return wall, monotonic

    def _now(self) -> int:
        return int(self._clock.wall() * 1e6)

    def _opened(self) -> Memory:
        if not self._memory.loaded:
            raise NotConnected("the queue store is not open")
        return self._memory

    async def tell_again(self, items: Sequence[NewItem]) -> list[Submitted]:
        return await self.submit(items, own=True)

    async def submit(self, items: Sequence[NewItem], *, own: bool = False) -> list[Submitted]:
        memory, bound = self._opened(), self._config.max_waiting
        check(items, self._config.max_payload, own=own)
        if not items:
            return []
        return await self._file.write(
            lambda connection: submit(connection, memory, items, bound, self._now()), heavy=len(items) > LIGHT
        )

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        memory, share, gates = self._opened(), self._config.low_share, ShutLanes(demand.closed)
        if seconds <= 0:
            raise InvalidRequest(f"a lease of {seconds} seconds: expected more than zero")

        quiet = self.quiet_until - self._clock.monotonic()
        if quiet > 0:
            await asyncio.sleep(min(wait, quiet))
            return None

        def look(connection: sqlite3.Connection) -> Leased | AskAgain:
            now, monotonic = self._keep_time(connection)
            self._collect(connection)
            if memory.jobs.due:
                advance(connection, memory, now)
            used, behind = self._clock.processor, int(self._file.behind * 1e6)
            found = claim(connection, memory, demand, gates, seconds, share, now, monotonic, used, behind)
            ended = bool(memory.jobs.due)
            if ended:  # leases that were over made jobs due
                advance(connection, memory, now)
            return found if isinstance(found, Leased) else AskAgain(0.0 if ended else found)

        return await self._file.write_when(look, wait)

    def _collect(self, connection: sqlite3.Connection, *, now: bool = False) -> bool:
        if now:
            self._outbox.again(connection)
        return self._outbox.collect(connection, self._memory, self._clock.monotonic(), self._now())

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        memory = self._opened()
        if phase is not State.PROCESSING:
            raise InvalidRequest(f"a lease is renewed as processing, not as {phase.label}")

        def prolong(connection: sqlite3.Connection) -> Renewed:
            _, monotonic = self._keep_time(connection)
            return renew(connection, memory, ids, fence, seconds, phase, monotonic)

        return await self._file.write(prolong)

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        memory = self._opened()

        def settle(connection: sqlite3.Connection) -> list[str]:
            now = self._now()
            if memory.jobs.open:
                return settle_with_jobs(connection, memory, fence, succeeded, others, now)
            refused = succeed(connection, memory, fence, succeeded, now) if succeeded else []
            return refused + end(connection, memory, fence, others, now)

        return await self._file.write(settle)

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        jobs = self._opened().jobs
        before = jobs.unfit
        refused = await self.settle(fence, succeeded, others)
        if not refused and jobs.unfit == before:
            return ResultSettlement([])
        ids = [each.id for each in others if each.result is not None]
        return ResultSettlement(
            refused, await self._file.read(lambda connection: reports.unfit(connection, fence, ids))
        )

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        self._opened()
        text = json_text([id_number(each) for each in ids])

        def load(connection: sqlite3.Connection) -> dict[int, Any]:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM tasks AS t LEFT JOIN entities AS e ON e.id = t.id"
                f" LEFT JOIN keyed AS k ON k.id = t.id WHERE t.id IN {IDS}",
                (text,),
            ).fetchall()
            return {row[0]: row[1:] for row in rows}

        found = await self._file.read(load)
        return [self._status(each, found.get(id_number(each))) for each in ids]

    def _status(self, id: str, row: Any) -> Status | None:
        return None if row is None else reports.status(self._memory, id, row, self._now(), self._monotonic())

    async def find(self, search: Search) -> Page:
        memory, wanted = self._opened(), span(search)
        kinds = kinds_of(search, dict(memory.kinds.kinds))
        if kinds == []:
            return Page([])
        keys = keys_of(search, memory.kinds.kinds, self._config.key_rule)
        rows, after = await self._file.read(lambda connection: find(connection, search, wanted, kinds, keys))
        found = [self._status(id_text(row[0]), row[1:]) for row in rows]
        return Page([each for each in found if each is not None], after)

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        self._opened()
        return await self._file.read(lambda connection: reports.tries(connection, ids))

    async def headers(self, ids: Sequence[str]) -> dict[str, Headers]:
        self._opened()
        return await self._file.read(lambda connection: reports.headers(connection, ids))

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        memory = self._opened()

        def mark(connection: sqlite3.Connection) -> list[str]:
            now = self._now()
            words = [cancel(connection, memory, id_number(each), now) for each in ids]
            advance(connection, memory, now)
            return words

        return await self._file.write(mark)

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        memory = self._opened()
        check_changes(changes)

        def change(connection: sqlite3.Connection) -> list[str]:
            now = self._now()
            return [reschedule(connection, memory, each, now) for each in changes]

        return await self._file.write(change)

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        self._opened()
        return await self._file.read(lambda connection: peek(connection, id, max_bytes))

    async def counts(self) -> dict[str, int]:
        memory = self._opened()
        return {state.label: memory.counts[state] for state in State}

    async def held(self) -> Held:
        memory, most = self._opened(), self._config.max_waiting
        live = sum(memory.counts[state] for state in WAITING | LEASED)
        if live * 2 <= most or not any(kind.tenant for kind in [*memory.kinds.kinds.values()]):
            return Held(most, live, {})
        return Held(most, live, await self._file.read(reports.held))

    async def tally(self) -> Tally:
        memory = self._opened()
        async with self._tallying:
            while True:
                try:
                    count = Count(memory)
                    while not await self._file.write(count.step):
                        pass
                    if (found := count.tally()) is not None:
                        return found
                finally:
                    memory.counted = None

    async def due(self, most: int) -> dict[str, int]:
        memory = self._opened()
        now = self._now()
        lanes = [lane for lane, earliest in list(memory.earliest.items()) if earliest <= now]
        lanes += memory.tenant_turns.lanes
        if not lanes:
            return {}

        return await self._file.read(lambda connection: count_due(connection, lanes, now, most))

    async def ageing(self) -> list[Ageing]:
        memory, now = self._opened(), self._now()
        rows = await self._file.read(lambda connection: ages(connection, now))
        return folded(memory.kinds.lanes, rows)

    async def sweep(self) -> int:
        """Ends leases that are over. Removes some of the ended items that are past the retention, and returns how
        many."""
        memory = self._opened()

        def look_around(connection: sqlite3.Connection) -> None:
            """Does the regular work that a claim would do, in case nobody claims."""
            now, monotonic = self._keep_time(connection)
            if self.quiet_until <= self._clock.monotonic():
                end_leases(connection, memory, now, monotonic, self._sweep_grace.micros(monotonic))
            self._collect(connection, now=True)
            note_wall(connection, self._memory, now)

        await self._file.write(look_around)
        ended = sum(memory.counts[state] for state in TERMINAL)
        (beside,) = await self._file.read(lambda connection: connection.execute("SELECT bytes FROM history").fetchone())
        excess = ended - kept(self._config.keep_ended, ended, ended * ROW + beside, self._config.history_bytes)
        oldest = self.trusted.micros() - int(self._config.retention * 1e6)
        # An item ends after the time in its id (unless the clock was ahead then), so later ids need no look.
        told = memory.ids.last < first_id((self._now() + STEP) // 1000)
        before = first_id(max(0, oldest) // 1000) if excess <= 0 and told else (1 << 63) - 1
        gone: list[int] = []
        for _ in range(SWEEP_READS):
            gone = await self._file.read(lambda connection: self._look(connection, before, oldest, excess))
            if gone or not self._swept:
                break

        def forget(connection: sqlite3.Connection) -> int:
            return forget_ended(connection, memory, gone)

        return await self._file.write(forget, heavy=len(gone) > LIGHT) if gone else 0

    def _look(self, connection: sqlite3.Connection, before: int, oldest: int, excess: int) -> list[int]:
        """Returns ended items to remove among the next rows; `_swept` becomes the id where the next look goes on."""
        rows = connection.execute(
            "SELECT id, ended FROM tasks WHERE id > ? AND id < ? ORDER BY id LIMIT ?", (self._swept, before, SWEEP_LOOK)
        ).fetchall()
        gone = [id for id, ended in rows if ended is not None and (excess > 0 or ended < oldest)]
        most = min(SWEEP, excess) if excess > 0 else SWEEP
        if len(gone) > most:
            gone = gone[:most]
            self._swept = gone[-1]
        else:
            self._swept = rows[-1][0] if len(rows) == SWEEP_LOOK else 0
        return gone
