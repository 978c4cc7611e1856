"""One SQLite file: one writer thread with group commit, one reader thread, one owner process.

The writer takes all waiting writes, runs them in one transaction, commits once and answers every caller: at FULL
durability a single row costs an fsync, and a thousand rows cost the same one. A write that takes long has a transaction
of its own, after the short ones (write_queue.py). *Standing* writes (`write_when`) stay in the writer until there is
something to do: they are asked again after other writes, in the same transaction, so a submission and the lease that
waits for it share one commit.

Python's sqlite3 gives up the interpreter lock at every step of a statement, and may wait a whole switch interval to get
it back from a busy event loop. So statements over batches are written to take one step (json_each, multi-row VALUES,
json_group_array).
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from ...model.errors import NotConnected, Overloaded, StoreFull, TailraceError
from .answers import SKIPPED, Answer, Write, WriteFunction, resolve
from .connecting import Connecting, closed_mark, write_back
from .errors import explained
from .write_queue import WriteQueue

T = TypeVar("T")

#: Most writes that may wait for the writer; further callers are refused (Overloaded).
MAX_PENDING = 20_000
#: Most writes that share one transaction.
MAX_GROUP = 512
#: Longest time until a standing write is asked again, seconds.
STANDING_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The answer of a standing write that has nothing to do yet: it is to be asked again after so many seconds at the
    latest."""

    after: float


class _HalfDone(Exception):
    """The failure of a write that had changed something already: the writes beside it must be undone too, and run
    again."""


class SqliteFile:
    """An open database file. `schema` is a script that makes missing tables, and does not change existing ones.

    `synchronous` is FULL (every answered write survives a power cut) or NORMAL (every answered write survives a crash
    of the process).
    """

    def __init__(self, path: Path, schema: str, *, name: str, synchronous: str = "FULL") -> None:
        self.path = path
        self.name = name
        self._schema = schema
        self._synchronous = synchronous
        self._pending: WriteQueue[Write] = WriteQueue()
        self._condition = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader: sqlite3.Connection | None = None
        self._reader_lock = asyncio.Lock()
        self._asked: Write | None = None  # the standing write whose turn it is
        self.behind = 0.0  # for a standing write: seconds for which earlier writes may have been waiting unseen
        self._begun = False  # the transaction has begun, so that memory may have followed it
        self.mark = 0  # is written to the file when it is opened; 0: none (see restored.py)
        self.bears_mark = False  # the mark is in the file's own header (see Connections)
        self._after_rollback: list[Callable[[sqlite3.Connection], None]] = []
        self._on_death: Callable[[BaseException], None] | None = None
        self._taken: list[Write] = []  # writes that the writer took and has not answered yet
        self._died = False
        self._wanted = False  # from the end of `open` to the beginning of `close`
        self._at_close: list[Callable[[sqlite3.Connection], None]] = []
        self._monotonic: Callable[[], float] = time.monotonic  # a simulated host has its own

    def on_rollback(self, fn: Callable[[sqlite3.Connection], None]) -> None:
        """Has `fn` run in the writer after a rollback, to read again what is kept in memory."""
        self._after_rollback.append(fn)

    def on_death(self, tell: Callable[[BaseException], None]) -> None:
        """Has `tell` called in the event loop when the writer thread ended by itself. Waiting writes were refused then,
        and all others are until the file was closed and opened again."""
        self._on_death = tell

    def on_close(self, fn: Callable[[sqlite3.Connection], None]) -> None:
        """Has `fn` run as the writer's last write, when the file is closed in order."""
        self._at_close.append(fn)

    async def open(self) -> None:
        """Opens the file, makes its tables and starts the writer. Raises StoreFull or TailraceError with what to do."""
        self._loop = asyncio.get_running_loop()
        connecting = Connecting(self.path, self._schema, self._synchronous, self._what, self.mark)
        connections = await connecting.both()
        self._reader, self.bears_mark = connections.reader, connections.bears_mark
        self._closing, self._wanted = False, True
        writer = (connections.writer,)
        self._thread = threading.Thread(target=self._run, args=writer, name=f"sqlite-{self.name}", daemon=True)
        self._thread.start()

    @property
    def _what(self) -> str:
        return f"{self.name} store at {self.path}"

    def _explain(self, error: Exception) -> Exception:
        return explained(error, self._what)

    async def write(
        self,
        fn: Callable[[sqlite3.Connection], T],
        committed: Callable[[T], None] | None = None,
        *,
        heavy: bool = False,
    ) -> T:
        """Runs `fn` in the writer and returns its value once the transaction is committed.

        An error of `fn` undoes `fn` alone and is raised here. `committed` gets the value in the event loop even if this
        call was cancelled meanwhile: it keeps memory in step with the file. `heavy`: `fn` takes milliseconds, so light
        writes go first. Raises Overloaded, StoreFull.
        """
        return cast(T, await self._queue(fn, None, committed, heavy=heavy))

    async def write_when(self, fn: Callable[[sqlite3.Connection], T | AskAgain], timeout: float) -> T | None:
        """Runs `fn` now, after each later group of writes, and when it asked to be, until it returns something other
        than AskAgain; returns None after `timeout` seconds. While `fn` runs, `behind` is the number of seconds for
        which other writes may have been waiting unseen, so that after a stall `fn` does not act on old news."""
        return cast("T | None", await self._queue(fn, self._monotonic() + timeout))

    async def _queue(
        self,
        fn: WriteFunction,
        deadline: float | None,
        committed: Callable[[Any], None] | None = None,
        *,
        heavy: bool = False,
    ) -> Any:
        if self._loop is None or self._closing:
            raise NotConnected(f"the {self.name} store is closed")
        if len(self._pending) >= MAX_PENDING:
            raise Overloaded(f"the {self.name} store has {MAX_PENDING} writes waiting; try again", 0.5)
        write = Write(fn, self._loop.create_future(), deadline, committed, self._monotonic())
        self._put(write, heavy)
        return await write.future

    def _put(self, write: Write, heavy: bool) -> None:
        """Hands a write to the writer."""
        with self._condition:
            self._pending.add(write, heavy=heavy)
            self._condition.notify()

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `fn` on the reading connection, in another thread; it sees everything committed so far."""
        # A thread cannot be cancelled: the connection is in use until `fn` returns, even if the caller has left.
        return await asyncio.shield(asyncio.create_task(self._read(fn)))

    async def _read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        async with self._reader_lock:
            reader = self._reader
            if reader is None:
                raise NotConnected(f"the {self.name} store is closed")
            try:
                return await asyncio.to_thread(fn, reader)
            except sqlite3.Error as error:
                raise self._explain(error) from None

    async def close(self) -> None:
        """Commits waiting writes, ends the threads and closes the file. Harmless when closed. After a close that was
        cancelled, waits for the rest of it."""
        self._wanted, thread = False, self._thread
        if thread is not None:
            with self._condition:
                self._closing = True
                self._condition.notify()
            await asyncio.to_thread(thread.join)
            self._thread = None
        async with self._reader_lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    # The writer thread.

    def _run(self, connection: sqlite3.Connection) -> None:
        standing: list[Write] = []
        try:
            if self._died:  # nobody knows how far the last writer came
                self._reload(connection)
                self._died = False
            self._serve(connection, standing)
        except BaseException as error:
            self._die(connection, standing, self._explain(error) if isinstance(error, Exception) else error)
            return
        self._answer([(each, None, NotConnected(f"the {self.name} store was closed")) for each in standing])
        with contextlib.suppress(sqlite3.Error):
            for last in self._at_close:
                last(connection)
            if self.mark:
                connection.execute(f"PRAGMA user_version={closed_mark(self.mark)}")
            write_back(connection)
        connection.close()

    def _serve(self, connection: sqlite3.Connection, standing: list[Write]) -> None:
        while True:
            self._taken, closing = self._take(standing)
            if self._taken or standing:
                self._commit(connection, self._taken, standing)
            if closing and not self._taken:
                return

    def _die(self, connection: sqlite3.Connection, standing: list[Write], error: BaseException) -> None:
        """Refuses all waiting and all later writes, because the writer has ended."""
        with self._condition:
            self._closing = self._died = True
            left = [*self._taken, *standing]
            while waiting := self._pending.take(MAX_GROUP):
                left += waiting
        with contextlib.suppress(sqlite3.Error):
            connection.close()  # undoes what was not committed
        why: Exception = NotConnected(f"the writer of the {self.name} store ended: {error!r}")
        if isinstance(error, TailraceError):
            why = error
        self._answer([(each, None, why) for each in left])
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._tell_death, threading.current_thread(), error)

    def _tell_death(self, writer: threading.Thread, error: BaseException) -> None:
        """Tells of the writer's death, unless the file was closed meanwhile: telling it then would close the file that
        was opened since."""
        if self._on_death is not None and self._wanted and self._thread in (writer, None):
            self._on_death(error)

    def _take(self, standing: list[Write]) -> tuple[list[Write], bool]:
        """Waits for writes, or for the time that a standing write asked for."""
        with self._condition:
            if not self._pending and not self._closing:
                now = self._monotonic()
                moments = [min(each.look, each.deadline or each.look) for each in standing]
                self._condition.wait(max(0.0, min(moments) - now) if moments else None)
            return self._pending.take(MAX_GROUP), self._closing

    def _commit(self, connection: sqlite3.Connection, group: list[Write], standing: list[Write]) -> None:
        """Commits one transaction: the group, then the standing writes. Answers after the commit.

        Nearly always no write fails half-way, so the writes first run without savepoints between them (4 µs and two
        turns of the interpreter lock each). If one fails after it had changed something, all run again with savepoints.
        """
        standing.extend(each for each in group if each.deadline is not None)
        plain = [each for each in group if each.deadline is None]
        answers: list[Answer] = []
        self._asked, self._begun = None, False
        try:
            try:
                self._transact(connection, plain, standing, answers, apart=False)
            except _HalfDone:
                self._undo(connection)
                answers.clear()
                self._transact(connection, plain, standing, answers, apart=True)
        except Exception as error:
            if self._begun:
                self._undo(connection)
            failure = self._explain(error)
            now = self._monotonic()
            for each in standing:  # later, not at once: the failure may last
                each.look = now + STANDING_LOOK
            # The standing write that failed is answered; otherwise it would make every later group fail.
            over = [each for each in standing if each is self._asked or (each.deadline or now) <= now]
            told = dict.fromkeys([*plain, *over, *(answer[0] for answer in answers)])  # once, in their order
            answers = [(each, None, failure) for each in told]
        gone = {id(answer[0]) for answer in answers}
        standing[:] = [each for each in standing if id(each) not in gone]
        self._answer(answers)

    def _transact(
        self,
        connection: sqlite3.Connection,
        plain: list[Write],
        standing: list[Write],
        answers: list[Answer],
        *,
        apart: bool,
    ) -> None:
        """Runs and commits writes; finished ones are added to `answers`. With `apart` each can be undone alone; without
        it, raises _HalfDone when one would have to be."""
        connection.execute("BEGIN IMMEDIATE")
        self._begun = True
        for each in plain:
            answers.append(self._attempt(connection, each, apart=apart))
        if not self._pending.gives_way:  # otherwise the next group asks them, together with the waiting writes
            answers.extend(self._attend(connection, standing, apart=apart))
        self._make_durable(connection)

    def _make_durable(self, connection: sqlite3.Connection) -> None:
        """Commits: the moment of every durable write. A crash before it leaves nothing; after it the writes stay
        although nobody was answered yet. `testing/crash_points.py` ends the process on either side of it."""
        connection.execute("COMMIT")

    def _undo(self, connection: sqlite3.Connection) -> None:
        """Undoes the transaction, in the file and in memory. An error here ends the writer: it may not go on with a
        memory that differs from the file."""
        if connection.in_transaction:  # SQLite itself undoes a transaction that found no room
            connection.execute("ROLLBACK")
        self._reload(connection)

    def _reload(self, connection: sqlite3.Connection) -> None:
        for reload in self._after_rollback:
            reload(connection)

    def _attempt(self, connection: sqlite3.Connection, write: Write, *, apart: bool) -> Answer:
        if write.future.cancelled():
            return write, SKIPPED, None
        if apart:
            connection.execute("SAVEPOINT one")
        changes = connection.total_changes
        try:
            value = write.fn(connection)
        except Exception as error:
            if isinstance(error, sqlite3.OperationalError) and isinstance(self._explain(error), StoreFull):
                raise  # the whole transaction is lost
            # A refusal before the first change left everything as it was: no need to read it all again.
            if connection.total_changes != changes or not isinstance(error, TailraceError):
                if not apart:
                    raise _HalfDone from error
                connection.execute("ROLLBACK TO one")
                self._reload(connection)
            if apart:
                connection.execute("RELEASE one")
            return write, None, self._explain(error) if isinstance(error, sqlite3.Error) else error
        if apart:
            connection.execute("RELEASE one")
        return write, value, None

    def _attend(self, connection: sqlite3.Connection, standing: list[Write], *, apart: bool) -> list[Answer]:
        """Asks each standing write; returns the finished ones. A write whose time is over before its turn is asked
        once."""
        over: list[Answer] = []
        now, first = self._monotonic(), self._pending.first
        whole = now if first is None else min(now, first.told)
        for each in standing:
            if each.asked and each.deadline is not None and now > each.deadline:
                over.append((each, None, None))
                continue
            self._asked = each
            self.behind = now - (whole if each.asked else min(whole, each.told))
            each.asked = True
            answer = self._attempt(connection, each, apart=apart)
            if isinstance(answer[1], AskAgain) and answer[2] is None and not each.future.cancelled():
                if each.deadline is not None and now >= each.deadline:
                    over.append((each, None, None))
                else:
                    each.look = now + min(STANDING_LOOK, max(0.0, answer[1].after))
            else:
                over.append(answer)
        self._asked = None
        return over

    def _answer(self, answers: list[Answer]) -> None:
        """Delivers all answers in one visit to the event loop."""
        loop = self._loop
        if answers and loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(resolve, answers)
