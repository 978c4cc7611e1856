"""Jobs on SQLite: in the queue's own file, written by the queue's own writer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from weakref import WeakValueDictionary

from ....model.job import ItemRedrive, JobHolder, JobItem, ResultPage, TreeRetry, TreeSpec, TreeStatus
from ....model.name import is_name
from ....model.workload import Kind
from ...config import StoresConfig
from ...queue.admission import check as check_items
from ...queue.counts import Held
from ...queue.ids import id_number
from ...queue.intake import Callback
from ...queue.queue import NewItem
from ...queue.sqlite.queue import LIGHT, SqliteQueue
from ..jobs import Feeding, JobEventRow
from ..rules import refusals
from ..rules.overdue import overdue
from ..rules.tree import check
from . import events, gather, queries, retry, trees
from .advance import advance
from .redrive import redrive

_ANY_KIND = Kind("job")  # only the items' own fields are checked here; the job's kind was checked when it was made


class SqliteJobs:
    """The Jobs beside this queue. It has no file or thread of its own.

    Invariant: another try of a tree is made by one caller at a time, who has its lock in `_retrying`, since each step
    goes on behind the last one.
    """

    def __init__(self, queue: SqliteQueue, config: StoresConfig | None = None) -> None:
        self._queue = queue
        self._file = queue.file
        self._config = config or StoresConfig()
        self._retrying = WeakValueDictionary[str, asyncio.Lock]()

    async def create(self, tree: TreeSpec, feedings: Sequence[Feeding], done: Callback | None = None) -> bool:
        check(tree)
        memory = self._queue.memory()

        def make(connection: sqlite3.Connection) -> bool:
            return trees.create(connection, memory, tree, (feedings, done), self._queue.now())

        return await self._file.write(make)

    async def add(
        self, tree: str, job: str, token: str, items: Sequence[JobItem], holder: JobHolder | None = None
    ) -> int:
        refusals.check_names(tree, job, held=holder is not None)
        refusals.check_items(token, items)
        check_items([NewItem(_ANY_KIND, each.payload, key=each.key) for each in items], self._queue.bounds[1])
        memory, bounds = self._queue.memory(), (self._queue.bounds[0], self._config.job_bytes)

        def put(connection: sqlite3.Connection) -> int:
            return trees.add(connection, memory, (tree, job), token, items, bounds, self._queue.now(), holder)

        return await self._file.write(put, heavy=len(items) > LIGHT)

    async def seal(self, tree: str, job: str) -> bool:
        refusals.check_names(tree, job)
        memory = self._queue.memory()

        def close(connection: sqlite3.Connection) -> bool:
            sealed = trees.seal(connection, memory, tree, job)
            advance(connection, memory, self._queue.now())
            return sealed

        return await self._file.write(close)

    async def show(self, tree: str, item: str = "") -> TreeStatus | None:
        self._queue.memory()
        if not is_name(tree) and id_number(item) < 0:
            return None
        return await self._file.read(lambda connection: queries.show(connection, tree, item))

    async def still_open(self, trees: Sequence[str]) -> list[str]:
        self._queue.memory()
        return await self._file.read(lambda connection: queries.still_open(connection, trees))

    async def held(self, what: str) -> Held:
        refusals.check_room(what)
        memory, most = self._queue.memory(), {"open": refusals.MOST_OPEN, "kept": self._config.job_bytes}[what]
        used = memory.jobs.open if what == "open" else await self._file.read(queries.kept)
        if used * 2 <= most or not any(kind.tenant for kind in [*memory.kinds.kinds.values()]):
            return Held(most, used, {})
        return Held(most, used, await self._file.read(lambda connection: queries.held(connection, what)))

    async def trees(self, state: str, after: str, limit: int) -> list[TreeStatus]:
        self._queue.memory()
        refusals.check_state(state)
        if after:
            refusals.check_names(after)
        return await self._file.read(lambda connection: queries.listing(connection, state, after, limit))

    async def results(self, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage:
        refusals.check_names(tree)
        self._queue.memory()
        refusals.check_page(after)
        found = await self._file.read(lambda connection: queries.results(connection, tree, after, limit, max_bytes))
        if found is None:
            raise refusals.unknown(tree)
        return found

    async def change(self, tree: str, what: str, why: str) -> str:
        refusals.check_names(tree)
        refusals.check_change(what)
        if what in refusals.HOLDS:
            return await self.hold(tree, refusals.HOLDS[what], None)
        memory = self._queue.memory()

        def alter(connection: sqlite3.Connection) -> str:
            word = trees.change(connection, memory, tree, what, why)
            advance(connection, memory, self._queue.now())
            return word

        return await self._file.write(alter)

    async def hold(self, tree: str, right: str, seen: str | None) -> str:
        refusals.check_names(tree)
        memory = self._queue.memory()

        def alter(connection: sqlite3.Connection) -> str:
            word = trees.hold(connection, memory, tree, right, seen)
            advance(connection, memory, self._queue.now())
            return word

        return await self._file.write(alter)

    async def retry(self, tree: str, id: str, who: str) -> TreeRetry:
        refusals.check_names(tree)
        refusals.check_id(id)
        memory, bound = self._queue.memory(), self._queue.bounds[0]
        step = retry.RetryStep(id)

        def some(connection: sqlite3.Connection) -> retry.RetryStep:
            made = retry.go_on(connection, memory, (tree, step), who, bound, self._queue.now())
            advance(connection, memory, self._queue.now())
            return made

        retrying = self._retrying.setdefault(tree, asyncio.Lock())
        async with retrying:
            while step.more:
                step = await self._file.write(some, heavy=True)
        return TreeRetry(step.id, step.items, [*step.anew])

    async def redrive(self, workloads: Sequence[str]) -> list[ItemRedrive]:
        memory, bound = self._queue.memory(), self._queue.bounds[0]
        return await self._file.write(
            lambda connection: redrive(connection, memory, workloads, bound, self._queue.now()),
            heavy=len(workloads) > LIGHT,
        )

    async def gathered(self, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
        self._queue.memory()
        refusals.check_page(after)
        return await self._file.read(lambda connection: gather.gathered(connection, holder, after, limit, max_bytes))

    async def audit(self, tree: str) -> list[str]:
        refusals.check_names(tree)
        self._queue.memory()
        found = await self._file.read(lambda connection: queries.audit(connection, tree))
        if found is None:
            raise refusals.unknown(tree)
        return found

    async def take_events(self, limit: int, seconds: float) -> list[JobEventRow]:
        memory = self._queue.memory()
        if not memory.jobs.told:
            return []
        return await self._file.write(lambda connection: events.take(connection, memory, limit))

    async def forget_events(self, numbers: Sequence[int]) -> None:
        await self._file.write(lambda connection: events.forget(connection, numbers))

    async def sweep(self) -> int:
        """Cancels trees that are open for too long, does due steps of jobs, and removes some of the trees that are past
        the retention. Returns 0 when nothing is left to do."""
        memory = self._queue.memory()

        def tidy(connection: sqlite3.Connection) -> int:
            now, trusted = self._queue.now(), self._queue.trusted.micros()
            cancelled = trees.cancel(connection, memory, overdue(trusted, self._config.job_max_age))
            advance(connection, memory, now)
            gone = trees.forget(connection, memory, trusted - int(self._config.job_retention * 1e6))
            return cancelled + len(memory.jobs.due) + gone

        return await self._file.write(tidy, heavy=True)
