"""A pool of a few connections to a server: THE rule of which one a call gets.

It gets the idle connection that ran the same statement last: the server's process keeps what it has read and planned
for a statement, and a first run takes several times as long as the next. Else it gets the connection that has been idle
longest, so that those in steady use are left to their statements. Where none is idle, it gets the first that comes
free: an old one, or a new one that is dialled meanwhile. So no call waits for a new connection, some ten milliseconds,
while an old one comes free.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, Protocol, TypeVar

from ...foundation.clock import SYSTEM_CLOCK, Clock

#: Seconds without dialling after it failed beside connections that work.
PAUSE = 1.0
#: Statements that are remembered with the connection that ran them last.
REMEMBERED = 200

_LOG = logging.getLogger("tailrace.stores")


class PostgresConnection(Protocol):
    """A connection, as this pool keeps it."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> Coroutine[Any, Any, None]: ...


C = TypeVar("C", bound=PostgresConnection)


class PostgresConnections(Generic[C]):
    """A pool of at most `most` connections, which `dial` makes.

    Invariants: no call waits while a connection is idle; `_open` counts those that are idle or with a call, `_dialling`
    those on their way.
    """

    def __init__(self, dial: Callable[[], Awaitable[C]], most: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._dial = dial
        self._most = most
        self._clock = clock
        self._idle: dict[C, None] = {}  # longest first
        self._homes: OrderedDict[Hashable, C] = OrderedDict()
        self._waiting: deque[asyncio.Future[C]] = deque()
        self._open = 0
        self._dialling = 0
        self._dials: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._failed = -math.inf  # monotonic, when one could not be dialled
        self._closed = True

    @property
    def idle(self) -> int:
        """Number of connections that no call has."""
        return len(self._idle)

    def open(self) -> None:
        """Opens the pool: connections that are given back are kept from now on."""
        self._closed = False

    async def take(self, statement: Hashable) -> C:
        """A connection to run this statement on; it is to be given back or dropped. Raises the errors of `dial`, where
        none is open."""
        found = self._pick(statement)
        if found is None:
            future: asyncio.Future[C] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            self._dial_more()
            try:
                found = await future
            except asyncio.CancelledError:
                if future.done() and not future.cancelled() and future.exception() is None:
                    self.give_back(future.result())
                raise
        self._homes[statement] = found
        self._homes.move_to_end(statement)
        if len(self._homes) > REMEMBERED:
            self._homes.popitem(last=False)
        return found

    def give_back(self, connection: C) -> None:
        """Takes back a connection that may be used again."""
        if connection.closed:
            self.drop(connection)
            return
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return
        if self._closed:
            self.drop(connection)
        else:
            self._idle[connection] = None

    def drop(self, connection: C) -> None:
        """Closes a connection that cannot be used any more."""
        self._open -= 1
        self._forget(connection)
        _run(connection.close(), self._closing)
        self._dial_more()

    async def dial_anew(self) -> None:
        """Closes the idle connections, so that the next calls get new ones."""
        idle, self._idle = self._idle, {}
        self._open -= len(idle)
        for connection in idle:
            self._forget(connection)
            await connection.close()

    async def close(self) -> None:
        """Closes all connections; those in use when they are given back. Harmless when closed."""
        self._closed = True
        await self.dial_anew()
        if not self._wanted():
            for dial in self._dials:
                dial.cancel()
        while left := self._dials | self._closing:
            await asyncio.wait(left)

    def _pick(self, statement: Hashable) -> C | None:
        home = self._homes.get(statement)
        if home is not None and home in self._idle:
            del self._idle[home]
            if not home.closed:
                return home
            self.drop(home)
        while self._idle:
            connection = next(iter(self._idle))
            del self._idle[connection]
            if not connection.closed:
                return connection
            self.drop(connection)
        return None

    def _wanted(self) -> int:
        """Number of calls that wait for a connection."""
        return sum(not future.done() for future in self._waiting)

    def _dial_more(self) -> None:
        """Dials one more connection, where a call waits for it and the bound allows it."""
        rests = self._open > 0 and self._clock.monotonic() - self._failed < PAUSE
        if self._wanted() > self._dialling and self._open + self._dialling < self._most and not rests:
            self._dialling += 1
            _run(self._dial_one(), self._dials)

    async def _dial_one(self) -> None:
        try:
            try:
                connection = await self._dial()
            finally:
                self._dialling -= 1
        except Exception as error:
            self._failed = self._clock.monotonic()
            if self._open == 0 and self._dialling == 0:
                waiting, self._waiting = self._waiting, deque()
                for future in waiting:
                    if not future.done():
                        future.set_exception(error)
            elif self._open and self._wanted():
                _LOG.warning("%s; going on with the open connections", error)
            return
        self._open += 1
        self.give_back(connection)

    def _forget(self, connection: C) -> None:
        for statement in [each for each, home in self._homes.items() if home is connection]:
            del self._homes[statement]


def _run(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    task = asyncio.create_task(work, name="a connection to PostgreSQL")
    tasks.add(task)
    task.add_done_callback(tasks.discard)
