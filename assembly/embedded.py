"""The embedded stores: four SQLite files in one data directory, opened together by the one process that owns them.

The queue may be on a server instead of in a file (`queue` in stores.yaml), and so may the delay service's streams
(`delay_log`); its items may wait in a queue of their own (`delay_queue`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path
from types import TracebackType
from typing import Self

from ..sdk.clock import SYSTEM_CLOCK, Clock
from ..sdk.lifecycle import cancel
from ..sdk.model.errors import ConfigError
from ..sdk.model.lease import LeaseSizes, wait_for_source
from ..stores.checkpoints import sqlite as checkpoints
from ..stores.config import StoresConfig
from ..stores.control import sqlite as control
from ..stores.data_dir import DataDir
from ..stores.dead_letters import sqlite as dead_letters
from ..stores.drops import sqlite as drops
from ..stores.inventory import sqlite as inventory
from ..stores.ledger import sqlite as ledger
from ..stores.log import sqlite as log
from ..stores.log.engines import OpenLog, chosen_log
from ..stores.ownership import sqlite as ownership
from ..stores.queue import sqlite as queue
from ..stores.queue.engines import ENGINES as QUEUES
from ..stores.queue.engines import OpenQueue
from ..stores.queue.lifecycle import LEASED, WAITING
from ..stores.replays import sqlite as replays
from ..stores.restored import Stamp
from ..stores.results import sqlite as results
from ..stores.schedules import sqlite as schedules
from ..stores.segments import sqlite as segments
from ..stores.sqlite import SqliteFile
from ..stores.sqlite_restored import supersede

#: Seconds between sweeps of what is past its retention.
SWEEP_PERIOD = 5.0
#: The files that know what was handed out.
QUEUE_FILE = "queue.db"
STAMPED = (QUEUE_FILE, "state.db")

#: The queue in which the delay service's items wait. The delay service bounds it (delay.yaml); what has moved on is
#: forgotten at once.
WAITING_FILE = "waiting.db"
WAITING_BOUNDS = {"max_waiting": 1 << 40, "max_payload": 12 << 20, "retention": 0.0, "keep_ended": 0}

_LOG = logging.getLogger("tailrace.stores")


async def refuse_what_waits_in(file: Path) -> None:
    """Raises ConfigError when a queue that is not configured any more still has workloads: nobody would run them."""
    former = SqliteFile(file, queue.SCHEMA, name="queue")
    await former.open()
    try:
        store = queue.SqliteQueue(former)
        await store.open()
        found = await store.counts()
    finally:
        await former.close()
    waiting = sum(found[state.label] for state in WAITING | LEASED)
    if waiting:
        raise ConfigError(
            f"{file} still has {waiting} workloads, and the queue is configured to be elsewhere: run it as it was until"
            " they have ended, or move the file away if they are not to run"
        )


class EmbeddedStores:
    """Every store of one node. A Part, and an async context manager for tools that fill or read a data directory.

    Files are apart where their writers would wait for each other: the queue's commits never wait for the log's.
    `file` opens them; a simulation has its own. When they were put back from a copy, what was handed out after it may
    still run: then nothing is claimed and no stream is taken for the lease of a source (`sizes`).
    """

    def __init__(
        self,
        data: Path,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        file: type[SqliteFile] = SqliteFile,
        sizes: LeaseSizes | None = None,
    ) -> None:
        config = config or StoresConfig()
        self.data_dir = DataDir(data)
        path, sync = self.data_dir.path, config.synchronous
        sizes = sizes or LeaseSizes()
        self._queue_file: SqliteFile | None = None
        self._log_file = file(path / "log.db", log.SCHEMA, name="log", synchronous=sync)
        self._delay_file: SqliteFile | None = None
        self._state_file = file(
            path / "state.db",
            checkpoints.SCHEMA
            + control.SCHEMA
            + dead_letters.SCHEMA
            + inventory.SCHEMA
            + ledger.SCHEMA
            + ownership.SCHEMA
            + drops.SCHEMA
            + replays.SCHEMA
            + results.SCHEMA
            + schedules.SCHEMA
            + segments.SCHEMA,
            name="state",
            synchronous=sync,
        )
        chosen = QUEUES.chosen(config.queue, config, clock, wait=wait_for_source(sizes))
        self._left_behind = chosen is not None and (path / QUEUE_FILE).exists()
        if chosen is None:
            self._queue_file = file(path / QUEUE_FILE, queue.SCHEMA, name="queue", synchronous=sync)
            chosen = queue.SqliteQueue(self._queue_file, config, clock)
        self.queue: OpenQueue = chosen
        self.log = log.SqliteLog(self._log_file, clock, retention=config.log_retention)
        delay_log = chosen_log(config.delay_log, clock)
        if delay_log is None:
            self._delay_file = file(path / "delay.db", log.SCHEMA, name="delay", synchronous=sync)
            delay_log = log.SqliteLog(self._delay_file, clock)
        self.delay_log: OpenLog = delay_log
        self.delay_queue: queue.SqliteQueue | None = None
        self._waiting_file: SqliteFile | None = None
        # A queue that is not configured any more is emptied all the same.
        if config.delay_queue != "none" or (path / WAITING_FILE).exists():
            self._waiting_file = file(path / WAITING_FILE, queue.SCHEMA, name="waiting", synchronous=sync)
            self.delay_queue = queue.SqliteQueue(self._waiting_file, config.model_copy(update=WAITING_BOUNDS), clock)
        self.checkpoints = checkpoints.SqliteCheckpoints(self._state_file)
        self.control = control.SqliteControl(self._state_file, clock)
        self.dead_letters = dead_letters.SqliteDeadLetters(self._state_file)
        self.drops = drops.SqliteDrops(self._state_file)
        self.inventory = inventory.SqliteInventory(self._state_file)
        self.ownership = ownership.SqliteOwnership(self._state_file, clock)
        self.ledger = ledger.SqliteLedger(self._state_file)
        self.results = results.SqliteResults(
            self._state_file, clock, retention=config.result_retention, max_bytes=config.result_bytes
        )
        self.segments = segments.SqliteSegments(self._state_file)
        self.replays = replays.SqliteReplays(self._state_file)
        self.schedules = schedules.SqliteSchedules(self._state_file)
        self._sweeper: asyncio.Task[None] | None = None
        self._clock, self._quiet = clock, wait_for_source(sizes)
        self._stamp = Stamp(path, STAMPED)
        self._opened = self._stamped = False
        self._quiet_until = -math.inf

    async def start(self) -> None:
        """Takes the data directory and opens the files. Raises what DataDir and SqliteFile raise."""
        self.data_dir.open()
        if self._left_behind:
            await refuse_what_waits_in(self.data_dir.path / QUEUE_FILE)
        moved = self._stamp.moved()
        for file in self._files():
            await file.open()
        if moved and moved != ["queue.db"]:  # no stream rests in the queue
            wall = self._clock.wall()
            await self._state_file.write(lambda connection: supersede(connection, wall))
        self._quiet_until = self._stay_quiet(moved) if moved else -math.inf
        self._opened = True
        self._stamp_opened()
        for store in (self.queue, self.log, self.delay_log, self.delay_queue):
            if store is not None:
                await store.open()
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep-stores")

    def _stay_quiet(self, moved: list[str]) -> float:
        until = self.queue.quiet_until = self.ownership.quiet_until = self._clock.monotonic() + self._quiet
        _LOG.warning(
            "%s: not what the last run left, but put back from a copy. What was handed out since then may still run: "
            "nothing is handed out for %.0f s (the lease of a source)",
            ", ".join(moved),
            self._quiet,
        )
        return until

    def _stamp_opened(self) -> None:
        """Not before the wait is over: whoever dies in it leaves it to the next run."""
        if not self._stamped and self._clock.monotonic() >= self._quiet_until:
            self._stamp.opened()
            self._stamped = True

    def engines(self) -> dict[str, object]:
        """The stores that other processes may use, by name."""
        waiting = {} if self.delay_queue is None else {"delay_queue": self.delay_queue}
        return waiting | {
            "queue": self.queue,
            "log": self.log,
            "delay_log": self.delay_log,
            "checkpoints": self.checkpoints,
            "dead_letters": self.dead_letters,
            "drops": self.drops,
            "results": self.results,
            "control": self.control,
            "inventory": self.inventory,
            "ownership": self.ownership,
            "ledger": self.ledger,
            "segments": self.segments,
            "replays": self.replays,
            "schedules": self.schedules,
        }

    def _files(self) -> list[SqliteFile]:
        files = (self._queue_file, self._log_file, self._delay_file, self._waiting_file, self._state_file)
        return [file for file in files if file is not None]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_PERIOD)
            self._stamp_opened()
            for each in (self.queue, self.delay_queue):
                while each is not None and await each.sweep():  # noqa: ASYNC110 - a pause between steps, no event
                    await asyncio.sleep(0.05)
            await self.log.sweep()

    async def drain(self, timeout: float) -> None:
        """Nothing to wait for: every answered write is in its file."""

    async def stop(self) -> None:
        """Closes the files and gives the data directory back."""
        if self._sweeper is not None:
            await cancel(self._sweeper)
            self._sweeper = None
        if self._opened:
            self._stamp_opened()
        await self.queue.close()
        await self.delay_log.close()
        for file in self._files():
            await file.close()
        if self._stamped:  # else the wait goes on in the next run, or nothing was opened
            self._stamp.closed()
            self._stamped = self._opened = False
        self.data_dir.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
