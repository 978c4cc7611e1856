"""The embedded stores: four SQLite files in one data directory, opened together by the one process that owns them.

The queue may be on a server instead of in a file (`queue` in stores.yaml), and so may the state (`state`) and the delay
service's streams (`delay_log`); its items may wait in a queue of their own (`delay_queue`).
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
from ..sdk.model.lease import LeaseSizes, wait_for_source
from ..stores.config import StoresConfig
from ..stores.data_dir import DataDir
from ..stores.log import sqlite as log
from ..stores.log.engines import OpenLog, chosen_log
from ..stores.queue.engines import ENGINES as QUEUES
from ..stores.queue.engines import OpenQueue
from ..stores.queue.sqlite import queue
from ..stores.restored import Stamp
from ..stores.sqlite import SqliteFile
from ..stores.sqlite_restored import supersede
from ..stores.state import sqlite as state
from ..stores.state.engines import ENGINES as STATES
from .binding import bind
from .left_behind import refuse_what_rests_in, refuse_what_waits_in

#: Seconds between sweeps of what is past its retention.
SWEEP_PERIOD = 5.0
#: The files that know what was handed out.
QUEUE_FILE, STATE_FILE = "queue.db", "state.db"
STAMPED = (QUEUE_FILE, STATE_FILE)

#: The queue in which the delay service's items wait. The delay service bounds it (delay.yaml); what has moved on is
#: forgotten at once.
WAITING_FILE = "waiting.db"
WAITING_BOUNDS = {"max_waiting": 1 << 40, "max_payload": 12 << 20, "retention": 0.0, "keep_ended": 0}

_LOG = logging.getLogger("tailrace.stores")


class EmbeddedStores:
    """Every store of one node. A Part, and an async context manager for tools that fill or read a data directory.

    Files are apart where their writers would wait for each other: the queue's commits never wait for the log's.
    `file` opens them; a simulation has its own. When they were put back from a copy, what was handed out after it may
    still run: then nothing is claimed and no stream is taken for the lease of a source (`sizes`). `reads_log`: somebody
    reads `log`, whose positions are in the state.
    """

    def __init__(
        self,
        data: Path,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        file: type[SqliteFile] = SqliteFile,
        sizes: LeaseSizes | None = None,
        reads_log: bool = False,
    ) -> None:
        config = config or StoresConfig()
        self.data_dir = DataDir(data)
        path, sync = self.data_dir.path, config.synchronous
        sizes = sizes or LeaseSizes()
        self._queue_file: SqliteFile | None = None
        self._log_file = file(path / "log.db", log.SCHEMA, name="log", synchronous=sync)
        self._delay_file: SqliteFile | None = None
        chosen = QUEUES.chosen(config.queue, config, clock, wait=wait_for_source(sizes))
        self._queue_left = chosen is not None and (path / QUEUE_FILE).exists()
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
        self._state_file: SqliteFile | None = None
        there = STATES.chosen(config.state, config, clock, wait=wait_for_source(sizes))
        self._state_left = there is not None and (path / STATE_FILE).exists()
        if there is None:
            self._state_file = file(path / STATE_FILE, state.SCHEMA, name="state", synchronous=sync)
            there = state.state_in(self._state_file, config, clock)
        self.state = there
        self._config, self._reads_log = config, reads_log
        self.checkpoints, self.control, self.dead_letters = there.checkpoints, there.control, there.dead_letters
        self.drops, self.inventory, self.ledger = there.drops, there.inventory, there.ledger
        self.ownership, self.replays, self.results = there.ownership, there.replays, there.results
        self.schedules, self.segments = there.schedules, there.segments
        self._sweeper: asyncio.Task[None] | None = None
        self._clock, self._quiet = clock, wait_for_source(sizes)
        used = ((QUEUE_FILE, self._queue_file), (STATE_FILE, self._state_file))
        self._stamp = Stamp(path, [name for name, own in used if own is not None])
        self._opened = self._stamped = False
        self._quiet_until = -math.inf

    async def start(self) -> None:
        """Takes the data directory and opens the files. Raises what DataDir and SqliteFile raise."""
        self.data_dir.open()
        if self._queue_left:
            await refuse_what_waits_in(self.data_dir.path / QUEUE_FILE)
        if self._state_left:
            await refuse_what_rests_in(self.data_dir.path / STATE_FILE)
        moved = self._stamp.moved()
        for file in self._files():
            await file.open()
        await self.state.ground.open()
        if self._state_file is not None and STATE_FILE in moved:  # no stream rests in the queue
            wall = self._clock.wall()
            await self._state_file.write(lambda connection: supersede(connection, wall))
        self._quiet_until = self._stay_quiet(moved) if moved else -math.inf
        self._opened = True
        self._stamp_opened()
        for store in (self.queue, self.log, self.delay_log, self.delay_queue):
            if store is not None:
                await store.open()
        if self._state_file is None:
            await self._bind_logs()
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep-stores")

    async def _bind_logs(self) -> None:
        """The state elsewhere has positions of these logs: they are of one node, or nobody knows of which."""
        mine = [] if self._delay_file is None else ["delay_log"]
        if self._reads_log or await self.log.streams():
            mine.append("log")
        await bind(self.data_dir.path, self.state.ground, self._config.state, mine)

    def _stay_quiet(self, moved: list[str]) -> float:
        until = self.queue.quiet_until = self._clock.monotonic() + self._quiet
        self.state.ground.stay_quiet(until)
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
        logs = {"log": self.log, "delay_log": self.delay_log}
        return waiting | logs | {"queue": self.queue} | self.state.engines()

    def _files(self) -> list[SqliteFile]:
        files = (self._queue_file, self._log_file, self._delay_file, self._waiting_file)
        return [file for file in files if file is not None]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_PERIOD)
            self._stamp_opened()
            for each in (self.queue, self.delay_queue):
                while each is not None and await each.sweep():  # noqa: ASYNC110 - a pause between steps, no event
                    await asyncio.sleep(0.05)
            await self.log.sweep()
            await self.state.ground.sweep()

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
        await self.state.ground.close()
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
