"""Stores that outlive their process: real SQLite transactions, run within the virtual time of the host that asked."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ...model.errors import NotConnected
from ...stores.sqlite.answers import Write
from ...stores.sqlite.file import MAX_GROUP, SqliteFile
from ...stores.trusted_time import Trusted
from .host import Host, WriterEnded, here
from .torn import torn

#: Seconds that SQLite waits for a lock before it says that the file is busy.
LOCK_WAIT = 5.0


class Disk:
    """The databases of one machine, by name. A copy may be taken, and put back as a restore from a backup would;
    `put_back` names those of which nobody took note yet; `troubles` those that something ails, and until when, true
    time. `boots` counts the machine's starts. What SQLite makes up follows from the disk's `name` and the order. Beside
    the databases are the notes of the trusted times (`trusted`) and other files (`texts`).

    With `in_files` they are files with write-ahead logs, as SQLite recovers them after a power cut; else they are in
    memory, which costs less."""

    def __init__(self, name: str = "", *, in_files: bool = False) -> None:
        self.boots = 1
        self._name = name
        self._made_up = 0
        self._folder = tempfile.TemporaryDirectory(prefix="tailrace-simulated-") if in_files else None
        self._paths: dict[str, Path] = {}
        self.put_back: set[str] = set()
        self.troubles: dict[str, tuple[str, float]] = {}
        self.trusted: dict[str, tuple[str, Trusted]] = {}
        self.texts: dict[str, str] = {}
        self._files: dict[str, sqlite3.Connection] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no database yet."""
        return not self._files

    def connect(self, name: str) -> sqlite3.Connection:
        """Returns the database, made where it is missing."""
        if name not in self._files:
            self._files[name] = self._empty() if self._folder is None else self._in_file(name)
        return self._files[name]

    def _in_file(self, name: str) -> sqlite3.Connection:
        assert self._folder is not None
        self._paths[name] = Path(self._folder.name) / f"{name}.{self.boots}.db"
        connection = self._connected(str(self._paths[name]))
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")  # what a power cut leaves is said by torn.py
        return connection

    def cut_power(self, name: str, chance: Callable[[int, int], int]) -> None:
        """Commits what a database has begun, as a machine does whose power fails meanwhile. Everything committed before
        is there when it starts again; this commit is there only if all of it was written."""
        log = self._paths[name].with_name(f"{self._paths[name].name}-wal")
        connection = self._files[name]
        connection.execute("PRAGMA wal_autocheckpoint=0")  # of that the log itself is not written anew
        before = log.read_bytes()
        connection.execute("COMMIT")
        found = {each: self._left(each) for each in self._files}
        base, after = found[name]
        found[name] = base, torn(before, after, chance)
        self.boots += 1
        former, self._files = self._files, {}
        for each in former.values():
            each.close()
        for each_name, (data, written) in found.items():
            path = Path(cast(Any, self._folder).name) / f"{each_name}.{self.boots}.db"
            path.write_bytes(data)
            path.with_name(f"{path.name}-wal").write_bytes(written)
            self.connect(each_name)

    def _left(self, name: str) -> tuple[bytes, bytes]:
        """A database and its write-ahead log, as they are on the disk."""
        path = self._paths[name]
        return path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()

    def _empty(self) -> sqlite3.Connection:
        return self._connected(":memory:")

    def _random(self, size: int) -> bytes:
        self._made_up += 1
        return hashlib.blake2b(f"{self._name} {self._made_up}".encode(), digest_size=size).digest()

    def _connected(self, place: str) -> sqlite3.Connection:
        connection = sqlite3.connect(place, isolation_level=None, cached_statements=512)
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.create_function("randomblob", 1, self._random)
        return connection

    def rows(self, name: str, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        """Rows that a query finds; none where its table does not exist yet."""
        try:
            return self.connect(name).execute(query, values).fetchall()
        except sqlite3.OperationalError:
            return []

    def copy(self, name: str) -> bytes:
        """Content of a database, as a backup would hold it."""
        return self._files[name].serialize()

    def restore(self, name: str, copy: bytes) -> None:
        """Puts an older copy in the place of a database that nobody has open."""
        self._files[name].close()
        self._files[name] = self._empty()
        self._files[name].deserialize(copy)
        self.put_back.add(name)

    def clone(self, other: Disk) -> None:
        """Takes over all that another disk has."""
        for name in other._files:
            self.connect(name)
            self.restore(name, other.copy(name))
        self.texts = dict(other.texts)

    def empty(self) -> None:
        """Forgets all files."""
        for connection in self._files.values():
            connection.close()
        self._files.clear()
        self.texts.clear()

    def close(self) -> None:
        """Forgets everything."""
        self.empty()
        if self._folder is not None:
            self._folder.cleanup()


class _Ended(BaseException):
    """The writer of a file ends by itself, or its machine does, in the middle of a commit."""


class InlineFile(SqliteFile):
    """A SqliteFile whose writer is the loop of the simulated host: the same groups, savepoints, standing writes and
    reloads, in the host's time. The world may end the host just before a commit or just after it, before anybody
    heard of it."""

    def __init__(self, path: Path, schema: str, *, name: str, synchronous: str = "FULL") -> None:
        super().__init__(path, schema, name=name, synchronous=synchronous)
        self._host: Host = here()
        self._monotonic = self._host.clock.monotonic
        self._standing: list[Write] = []
        self._connection: sqlite3.Connection | None = None
        self._turn_set = False
        self._look: asyncio.TimerHandle | None = None
        self._waited = 0.0  # for a lock

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.sleep(self._host.latency())
        self._connection = self._host.disk.connect(self.name)
        self._connection.executescript(self._schema)
        self._host.files[self.name] = self
        if self._died:
            self._reload(self._connection)
            self._died = False
        self._closing, self._wanted = False, True

    def _put(self, write: Write, heavy: bool) -> None:
        if self._connection is None:
            raise NotConnected(f"the {self.name} store is closed")
        self._pending.add(write, heavy=heavy)
        self._soon()

    def _soon(self) -> None:
        if not self._turn_set and self._loop is not None:
            self._turn_set = True
            self._loop.call_later(self._host.latency(), self._turn)

    def _turn(self) -> None:
        """Runs one transaction of everything that waits."""
        self._turn_set = False
        connection, host = self._connection, self._host
        if connection is None:
            return
        if self._waits():
            return
        group = self._pending.take(MAX_GROUP)
        if group and host.point(f"{self.name}: before commit"):
            return
        if group or self._standing:
            try:
                self._commit(connection, group, self._standing)
            except _Ended as error:
                self._ended_in(connection, group, error)
                return
            host.after_commit(self.name)
        if group and host.point(f"{self.name}: after commit"):
            return
        if self._pending:
            self._soon()
        self._arm()

    def _trouble(self) -> tuple[str, float]:
        """The trouble of the file now, and for how many seconds more."""
        kind, until = self._host.disk.troubles.get(self.name, ("", 0.0))
        left = until - self._host.world.now
        return (kind, left) if left > 0 else ("", 0.0)

    def _waits(self) -> bool:
        """Whether the writer waits for a lock: as long as SQLite does, then it fails."""
        kind, left = self._trouble()
        if kind != "busy" or self._loop is None or not (self._pending or self._standing):
            return False
        if self._waited >= LOCK_WAIT:
            self._waited = 0.0
            return False
        wait = min(left, LOCK_WAIT - self._waited) + 1e-6
        self._waited += wait
        self._host.world.count("wait for a file")
        self._turn_set = True
        self._loop.call_later(wait, self._turn)
        return True

    def _transact(self, connection: sqlite3.Connection, *more: Any, **options: Any) -> None:
        if self._trouble()[0] == "busy":
            self._host.world.count("busy file")
            raise _refusal(sqlite3.SQLITE_BUSY, "database is locked")
        self._waited = 0.0
        super()._transact(connection, *more, **options)

    def _make_durable(self, connection: sqlite3.Connection) -> None:
        trouble = self._trouble()[0]
        if trouble == "full":
            self._host.world.count("full file")
            raise _refusal(sqlite3.SQLITE_FULL, "database or disk is full")
        if trouble in ("power", "ends before"):
            raise _Ended(trouble)
        super()._make_durable(connection)
        if trouble == "ends after":
            raise _Ended(trouble)

    def _ended_in(self, connection: sqlite3.Connection, group: list[Write], error: _Ended) -> None:
        """Handles the end of the writer in a commit, which its callers hear of, or of the machine, of which nobody
        hears."""
        host = self._host
        host.disk.troubles.clear()
        host.world.count(f"{self.name}: {error}")
        if str(error) == "power":
            host.disk.cut_power(self.name, host.world.random.randint)
            host.reboot()
        else:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._taken = group
            spare = sqlite3.connect(":memory:")  # the world's own stays open
            self._die(spare, self._standing, WriterEnded(str(error)))
            self._taken, self._standing = [], []
        host.after_commit(self.name)

    def _arm(self) -> None:
        """Sets the timer for the next look at standing writes."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self._standing and self._loop is not None:
            at = min(min(each.look, each.deadline or each.look) for each in self._standing)
            self._look = self._loop.call_at(max(at, self._loop.time() + 1e-4), self._turn)

    def _answer(self, answers: Any) -> None:
        """Answers callers a little later, as from another thread."""
        if answers and self._loop is not None:
            self._loop.call_later(self._host.latency(), super()._answer, answers)

    async def _read(self, fn: Callable[[sqlite3.Connection], Any]) -> Any:
        async with self._reader_lock:
            await asyncio.sleep(self._host.latency())
            if self._connection is None:
                raise NotConnected(f"the {self.name} store is closed")
            try:
                value = fn(self._connection)
            except sqlite3.Error as error:
                raise self._explain(error) from None
            await asyncio.sleep(self._host.latency())
            return value

    async def close(self) -> None:
        while self._connection is not None and self._pending:  # noqa: ASYNC110 - each sleep is one group
            await asyncio.sleep(self._host.latency())
        self._closing, self._wanted = True, False
        if self._look is not None:
            self._look.cancel()
        standing, self._standing = self._standing, []
        super()._answer([(each, None, NotConnected(f"the {self.name} store was closed")) for each in standing])
        self._connection = None


def _refusal(code: int, text: str) -> sqlite3.OperationalError:
    """Makes an error as SQLite does."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error
