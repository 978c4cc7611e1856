"""The embedded stores: four SQLite files in one data directory, opened together by the one process that owns them.

The queue may be on a server instead of in a file (`queue` in stores.yaml), and so may the state (`state`) and the delay
service's streams (`delay_log`); its items may wait in a queue of their own (`delay_queue`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import each_of
from ..model.backoff import SWEEP, Backoff
from ..model.errors import TailraceError
from ..model.lease import LeaseSizes, wait_for_source
from ..model.reopening import Trouble
from ..stores.config import StoresConfig
from ..stores.control.sqlite import SqliteControl
from ..stores.control.sqlite_restored import RevokedTokens, end_revoked
from ..stores.data_dir import DataDir
from ..stores.fleets import note_fleet, refuse_another, refuse_folder_of_another
from ..stores.heights import STATE
from ..stores.jobs.engines import AdvancingJobs, OpenJobs, jobs_beside
from ..stores.jobs.jobs import JobOutbox
from ..stores.jobs.relay import LOOK, LOOK_AT_SERVER, JobEventRelay
from ..stores.log import sqlite as log
from ..stores.log.engines import OpenLog, chosen_log
from ..stores.log.readers import LogReaders
from ..stores.queue.engines import ENGINES as QUEUES
from ..stores.queue.engines import OpenQueue
from ..stores.queue.sqlite import queue
from ..stores.remembered_heights import RememberedHeights
from ..stores.restored import Stamp
from ..stores.spool.spool import FILE as SPOOL_FILE
from ..stores.sqlite.file import SqliteFile
from ..stores.sqlite.write_ahead_log import HeldLog, log_size, watch
from ..stores.state import sqlite as state
from ..stores.state.engines import ENGINES as STATES
from ..stores.state.sqlite_restored import supersede
from ..stores.troubles import Troubled
from ..stores.trusted_time import HOST, TrustedTime, TrustedTimes
from .delay_log_marks import forget_marks_of_another_log
from .heights import NotedHeights
from .left_behind import refuse_what_is_parked_in, refuse_what_rests_in, refuse_what_waits_in
from .log_binding import LogBindings

#: Seconds between sweeps of entries past their retention.
SWEEP_PERIOD = SWEEP.first
#: The files that know what was handed out.
QUEUE_FILE, STATE_FILE = "queue.db", "state.db"
LOG_FILE, DELAY_FILE = "log.db", "delay.db"

#: The queue in which the delay service's items wait. The delay service bounds it (delay.yaml); an item that has moved
#: on is forgotten at once.
WAITING_FILE = "waiting.db"
STAMPED = (QUEUE_FILE, STATE_FILE, LOG_FILE, DELAY_FILE, WAITING_FILE)
WAITING_BOUNDS = {"max_waiting": 1 << 40, "max_payload": 12 << 20, "retention": 0.0, "keep_ended": 0}

#: Two duties, as operators are told of them.
_STAMPING, _NOTING = "the notes in the data directory", "the note of the stores' heights in the run directory"

_LOG = logging.getLogger("tailrace.stores")


class EmbeddedStores:
    """Every store of one node. A Part, and an async context manager for tools that fill or read a data directory.

    Files are apart where their writers would wait for each other: the queue's commits never wait for the log's.
    `file` opens them; a simulation has its own. When they were put back from a copy, items handed out after it may
    still run: then nothing is claimed and no stream is taken for the lease of a source (`sizes`). `reads_log`: somebody
    reads `log`, whose positions are in the state. `run_dir`: the folder outside the data directory in which the heights
    of the stores are noted. `carries_events`: events of jobs go on into `log` while it is open. `fleet`: the fleet of
    this process, empty where it has none; stores of another fleet are refused.
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
        run_dir: Path | None = None,
        carries_events: bool = False,
        fleet: str = "",
    ) -> None:
        config = config or StoresConfig()
        self.data_dir = DataDir(data)
        path, sync, sizes = self.data_dir.path, config.synchronous, sizes or LeaseSizes()
        self._queue_file: SqliteFile | None = None
        self._log_file = file(path / LOG_FILE, log.SCHEMA, name="log", synchronous=sync)
        self._delay_file: SqliteFile | None = None
        times = {HOST: TrustedTime(clock)}
        trusted = self.trusted = times[HOST]
        chosen = QUEUES.chosen(config.queue, config, clock, wait=wait_for_source(sizes), fleet=fleet, times=times)
        self._queue_left = chosen is not None and (path / QUEUE_FILE).exists()
        if chosen is None:
            self._queue_file = file(path / QUEUE_FILE, queue.SCHEMA, name="queue", synchronous=sync)
            chosen = queue.SqliteQueue(self._queue_file, config, clock, trusted=trusted)
        self.queue: OpenQueue = chosen
        self.jobs = jobs_beside(chosen, config)
        self.log = log.SqliteLog(
            self._log_file, clock, retention=config.log_retention, max_bytes=config.log_bytes, trusted=trusted
        )
        delay_log = chosen_log(config.delay_log, clock, fleet)
        self._delay_left = delay_log is not None and (path / DELAY_FILE).exists()
        if delay_log is None:
            self._delay_file = file(path / DELAY_FILE, log.SCHEMA, name="delay", synchronous=sync)
            delay_log = log.SqliteLog(self._delay_file, clock)
        self.delay_log: OpenLog = delay_log
        self.delay_queue: queue.SqliteQueue | None = None
        self._waiting_file: SqliteFile | None = None
        # A queue that is not configured any more is emptied all the same.
        if config.delay_queue != "none" or (path / WAITING_FILE).exists():
            self._waiting_file = file(path / WAITING_FILE, queue.SCHEMA, name="waiting", synchronous=sync)
            self.delay_queue = queue.SqliteQueue(
                self._waiting_file, config.model_copy(update=WAITING_BOUNDS), clock, trusted=trusted
            )
        self._state_file: SqliteFile | None = None
        there = STATES.chosen(config.state, config, clock, wait=wait_for_source(sizes), fleet=fleet, times=times)
        self._state_left = there is not None and (path / STATE_FILE).exists()
        if there is None:
            self._state_file = file(path / STATE_FILE, state.SCHEMA, name="state", synchronous=sync)
            there = state.state_in(self._state_file, config, clock, trusted)
        self.state = there
        self._config, self._reads_log, self._carries_events, self._fleet = config, reads_log, carries_events, fleet
        self.checkpoints, self.control, self.dead_letters = there.checkpoints, there.control, there.dead_letters
        self.drops, self.inventory, self.ledger = there.drops, there.inventory, there.ledger
        self.ownership, self.replays, self.results = there.ownership, there.replays, there.results
        self.schedules, self.segments, self.usage = there.schedules, there.segments, there.usage
        self.duties = Duties("stores")
        for own in self._all_files():
            own.on_death(functools.partial(self.duties.failed, f"the writer of {own.name}.db"))
        self._clock, self._quiet, self._run_dir = clock, wait_for_source(sizes), run_dir
        self._trusted = TrustedTimes(path, times, clock)
        self._stamp = Stamp(path, [file.path.name for file in self._all_files()], [SPOOL_FILE])
        self.heights = self._heights_in(None if run_dir is None else RememberedHeights(run_dir, path))
        self._bindings = LogBindings(
            path, there.ground, config.state, {"log": self._log_file, "delay_log": self._delay_file}, clock
        )
        self.held_logs: dict[str, HeldLog] = {}  # write-ahead logs that somebody keeps from being begun anew, by file
        self._marks: dict[str, int] = {}
        self._moved: Sequence[str] = ()  # files that were put back, until the wait for it is over
        self._opened, self._stamped, self._quiet_until = False, False, -math.inf

    async def start(self) -> None:
        """Takes the data directory and opens the files. Raises the errors of DataDir and SqliteFile."""
        self.data_dir.open()
        refuse_folder_of_another(self.data_dir.path, self._fleet)
        if self._queue_left:
            await refuse_what_waits_in(self.data_dir.path / QUEUE_FILE)
        if self._delay_left:
            await refuse_what_is_parked_in(self.data_dir.path / DELAY_FILE)
        if self._state_left:
            await refuse_what_rests_in(self.data_dir.path / STATE_FILE)
        self._stamp.refuse_gone()
        here = self._on_disk()
        self._trusted.begin(fresh=not here and None not in (self._queue_file, self._state_file), here=here)
        moved = self._moved = self._stamp.moved()
        self._mark()
        for file in self._files():
            await file.open()
        await self.state.ground.open()
        if self._fleet and self._state_file is not None:
            owner = await self.control.belong(self._fleet)
            refuse_another(f"{self._state_file.path}", owner, self._fleet, "another `--data`")
        if self._state_file is not None and moved and moved != [QUEUE_FILE]:  # no stream rests in the queue
            wall = self._clock.wall()
            await self._state_file.write(lambda connection: supersede(connection, wall))
        self._quiet_until = self._stay_quiet(moved) if moved else -math.inf
        self._opened = True
        self._marks = {file.path.name: file.mark for file in self._all_files() if file.bears_mark}
        self._stamp_opened()
        for store in (self.queue, self.log, self.delay_log, self.delay_queue):
            if store is not None:
                await store.open()
        note_fleet(self.data_dir.path, self._fleet)
        await self.heights.opened()
        with contextlib.suppress(OSError):  # the sweep tries again, and tells
            self._note_trusted()
        if self._run_dir is not None and isinstance(self.control, SqliteControl):
            remembered = RevokedTokens(self._run_dir, await self.heights.name(STATE))
            await end_revoked(self.control, remembered, self._clock, moved=STATE_FILE in self._moved)
        if self._state_file is None:
            await self._bind_logs(reads_log=self._reads_log)
            self.duties.begin(self._bindings.hold(), "hold-logs")
        await forget_marks_of_another_log(self.checkpoints, self.ownership, self.delay_log, self._config.delay_log)
        self.duties.begin(self._sweep(), "sweep-stores")
        if isinstance(self.jobs, AdvancingJobs):
            self.duties.begin(self.jobs.run(), "advance-jobs")
        if self._carries_events and isinstance(self.jobs, JobOutbox):
            relay = JobEventRelay(self.jobs, self.log, LOOK if self._queue_file else LOOK_AT_SERVER)
            self.duties.begin(relay.run(), "carry-job-events")

    def _heights_in(self, outside: RememberedHeights | None) -> NotedHeights:
        queues = {QUEUE_FILE: self.queue, WAITING_FILE: self.delay_queue}
        own = {name: each for name, each in queues.items() if isinstance(each, queue.SqliteQueue)}
        logs = [file for file in (self._log_file, self._delay_file) if file is not None]
        return NotedHeights(outside, own, logs, self._state_file, self._were_set_back, self._clock, self.trusted)

    async def _were_set_back(self, names: Iterable[str]) -> None:
        """Holds hand-outs off when files were set back together with their stamp."""
        self._quiet_until = self._hold_off()
        self._moved = self._stamp.names
        self._stamp.opened(self._marks, self._moved)
        _LOG.warning("%s", self.heights.tell(names, self._quiet))

    async def _bind_logs(self, *, reads_log: bool) -> None:
        """Binds a state on a server to this node's logs, since it has positions in them."""
        mine = [] if self._delay_file is None else ["delay_log"]
        if reads_log or await self.log.streams():
            mine.append("log")
        await self._bindings.bind(mine)

    async def reads_log_now(self) -> None:
        """Binds the log to this node, since a tailer of it is new."""
        if not self._reads_log:
            await self._bind_logs(reads_log=True)
            self._reads_log = True

    def _mark(self) -> None:
        """Gives each file another mark when it is opened."""
        for file in self._all_files():
            file.mark = secrets.randbits(31) | 1
        self._stamp.opening({file.path.name: file.mark for file in self._all_files()}, self._moved)

    def _hold_off(self) -> float:
        until = self.queue.quiet_until = self._clock.monotonic() + self._quiet
        self.state.ground.stay_quiet(until)
        return until

    def _stay_quiet(self, moved: list[str]) -> float:
        until = self._hold_off()
        _LOG.warning(
            "%s: not as the last run left it, but put back from a copy. Items handed out since then may still run: "
            "nothing is handed out for %.0f s (the lease of a source)",
            ", ".join(moved),
            self._quiet,
        )
        return until

    def _stamp_opened(self) -> None:
        """Stamps the files as opened. Files that were put back count as such until the wait is over, so that a process
        which dies in it leaves the wait to the next run."""
        if self._moved and self._clock.monotonic() >= self._quiet_until:
            self._moved, self._stamped = (), False
        if not self._stamped:
            self._stamp.opened(self._marks, self._moved)
            self._stamped = True

    def troubles(self) -> list[Trouble]:
        """Troubles found when the files were opened, and since, and those of servers, for operators."""
        stores = (self.heights, self._trusted, self.log, self.queue, self.delay_log, self.state.ground)
        return [trouble for store in stores if isinstance(store, Troubled) for trouble in store.troubles()]

    def engines(self) -> dict[str, object]:
        """The stores that other processes may use, by name."""
        waiting = {} if self.delay_queue is None else {"delay_queue": self.delay_queue}
        logs = {"log": self.log, "delay_log": self.delay_log}
        return waiting | logs | {"queue": self.queue, "jobs": self.jobs, "heights": self.heights} | self.state.engines()

    def _files(self) -> list[SqliteFile]:
        files = (self._queue_file, self._log_file, self._delay_file, self._waiting_file)
        return [file for file in files if file is not None]

    def _all_files(self) -> list[SqliteFile]:
        return [*self._files(), *([] if self._state_file is None else [self._state_file])]

    def _on_disk(self) -> bool:
        return any(file.path.exists() for file in self._all_files())

    def _note_trusted(self, *, now: bool = False) -> None:
        self.trusted.micros()
        if self._on_disk():  # the databases of a simulation are elsewhere
            self._trusted.note(now=now)

    async def _sweep(self) -> None:
        """Sweeps the stores one after the other. A sweep holds nothing between two turns, so a failure is only told,
        and the sweep is tried again after a pause."""
        swept = [
            ("queue", _whole(self.queue)),
            ("jobs", _whole(self.jobs)),
            ("log", self._sweep_log),
            ("state", self.state.ground.sweep),
        ]
        swept.append(("write-ahead logs", self._watch_logs))
        if self.delay_queue is not None:
            swept.append(("delay queue", _whole(self.delay_queue)))
        backoffs = {name: Backoff(SWEEP_PERIOD, SWEEP.last) for name, _ in swept}
        due = dict.fromkeys(backoffs, 0.0)
        while True:
            await asyncio.sleep(SWEEP_PERIOD)
            await self._note()
            for name, sweep in swept:
                if self._clock.monotonic() < due[name]:
                    continue
                duty = f"the sweep of the {name}"
                try:
                    await sweep()
                except Exception as error:
                    self._ails(duty, error)
                    due[name] = self._clock.monotonic() + backoffs[name].pause()
                else:
                    backoffs[name].reset()
                    if self.duties.well(duty):
                        _LOG.info("%s goes on", duty)

    async def _sweep_log(self) -> None:
        readers = LogReaders(self.checkpoints)
        while await self.log.sweep(await readers.readers(await self.log.life(""))):  # noqa: ASYNC110 - a pause between steps, no event
            await asyncio.sleep(0.05)

    async def _note(self, *, last: bool = False) -> None:
        """Writes the state of the files into the stamp, then their heights outside; no heights during a wait, so that a
        process which dies in it leaves the wait to the next run."""
        duty = _STAMPING
        try:
            self._stamp_opened()
            self._note_trusted(now=last)
            duty = _NOTING
            if not self._moved:
                await self.heights.note(now=last)
        except (OSError, TailraceError) as error:
            if last:  # the run ends, perhaps since its writer died: the next run has the note from before
                _LOG.info("%s failed at the end: %s", duty, error)
            else:
                self._ails(duty, error)
        else:
            self.duties.well(_STAMPING)
            self.duties.well(_NOTING)

    def _ails(self, duty: str, error: Exception) -> None:
        """Logs a failure of a duty once, with its traceback unless it is an expected kind of error."""
        why = str(error) or type(error).__name__
        if self.duties.ails(duty, why, self._clock.monotonic()):
            accident = isinstance(error, TailraceError | OSError)
            _LOG.warning("%s failed, and is tried again: %s", duty, why, exc_info=None if accident else error)

    async def _watch_logs(self) -> None:
        for file in self._all_files():
            name = file.path.name
            most, held = self._config.write_ahead, None
            if log_size(file.path) > most:
                held = await asyncio.to_thread(watch, file.path, most)
            before = self.held_logs.pop(name, None)
            if held is None:
                if before is not None:
                    _LOG.info("%s-wal was written back", name)
                continue
            self.held_logs[name] = held
            if before is None:
                who = ", ".join(held.readers) or "nobody known has it open"
                _LOG.warning("%s-wal has %.0f MB and cannot be checkpointed: %s", name, held.size / 1e6, who)

    async def drain(self, timeout: float) -> None:
        """Does nothing: every answered write is in its file."""

    async def stop(self) -> None:
        """Closes the files and gives the data directory back, whatever fails on the way."""
        files = [file.close for file in self._files()]
        stores = [self.queue.close, self.delay_log.close, self.state.ground.close]
        before = [self.duties.end, self._bindings.release, self._note_if_open]
        await each_of([*before, *stores, *files, self._leave])

    async def _note_if_open(self) -> None:
        if self._opened:
            await self._note(last=True)

    async def _leave(self) -> None:
        try:
            if self._stamped:
                self._stamp.closed(self._marks, self._moved)
        finally:
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


def _whole(each: OpenQueue | OpenJobs) -> Callable[[], Awaitable[object]]:
    """A sweep that goes on until nothing is left to sweep, with a pause between the steps."""

    async def sweep() -> None:
        while await each.sweep():  # noqa: ASYNC110 - a pause between steps, no event
            await asyncio.sleep(0.05)

    return sweep
