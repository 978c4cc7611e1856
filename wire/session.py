"""Moves the frames of a link over streams: the dialing half, the serving half, and the protocol of their owner.

An owner (an `Endpoint`) is synchronous and holds everything pending; the shell here asks it for the next frame
whenever the connection can take one. While a write is under way more becomes pending, so messages grow under load and
go at once when idle: coalescing without a delay.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.lifecycle import end_all
from ..model.backoff import CONNECTION, Backoff
from ..model.caller import Caller
from ..model.errors import SessionLost, UserError
from ..model.lease import LeaseSizes, differing
from ..model.linger import FRAMES
from .link import Link
from .stream import DialedStream, Stream, StreamClosed
from .v1 import scheduler_pb2 as pb

#: After a frame that took long to send, and behind which more came already, more is let gather for this share of that
#: time, so that under load frames grow and each message's fixed cost is shared by more items. Behind a lone item's
#: frame there is no pause, however slow the machine is: nothing came behind it, or it took less than the least.
PAUSE_SHARE = 1.5
LEAST_PAUSE = 0.001

_LOG = logging.getLogger("tailrace.wire")


class Endpoint(Protocol):
    """The owner of one end of a session. All calls come from one event loop and must not block.

    opened    a connection is up; `resumed` is False for a session that starts empty
    compose   returns the next frame with everything pending, or None; called again after each write
    accept    takes a frame that was not handled before
    broken    the connection is gone; the session may yet be resumed
    lost      the session is gone for good (dialing half only: the other side did not know it)
    """

    def opened(self, resumed: bool) -> None: ...

    def compose(self) -> Any | None: ...

    def accept(self, frame: Any) -> None: ...

    def broken(self) -> None: ...

    def lost(self) -> None: ...


class LinkConnection:
    """One connection of a link, for as long as it lasts."""

    def __init__(self, link: Link, endpoint: Endpoint, empty: Callable[[], Any], silence: float, clock: Clock) -> None:
        self._link = link
        self._endpoint = endpoint
        self._empty = empty
        self._silence = silence
        self._clock = clock
        self._wake = asyncio.Event()
        self._heard = clock.monotonic()
        self._writing = math.inf  # since when a frame waits to be taken

    def notify(self) -> None:
        """Wakes the writer: the endpoint has something to send."""
        self._wake.set()

    async def run(self, stream: Stream, again: list[Any]) -> None:
        """Sends the frames of `again` first, then moves frames both ways; returns when the connection ends. Raises
        SessionLost when the other end is in another session, StreamClosed when it refuses a frame (UserError), and
        any error of the endpoint."""
        self._heard = self._clock.monotonic()
        tasks = [
            asyncio.create_task(self._write(stream, again), name="link-write"),
            asyncio.create_task(self._read(stream), name="link-read"),
            asyncio.create_task(self._listen(), name="link-silence"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_all(tasks)
        for task in done:
            error = None if task.cancelled() else task.exception()
            refused = isinstance(error, StreamClosed) and isinstance(error.error, UserError)
            if error is not None and (refused or not isinstance(error, StreamClosed)):
                raise error

    async def _write(self, stream: Stream, again: list[Any]) -> None:
        link, compose, wake, clock = self._link, self._endpoint.compose, self._wake, self._clock
        for frame in again:
            self._writing = clock.monotonic()
            await stream.send(frame)
        self._writing = math.inf
        while True:
            wake.clear()
            frame = None if link.full else compose()
            if frame is not None:
                began = self._writing = clock.monotonic()
                link.stamp(frame)
                await stream.send(frame)
                self._writing = math.inf
                pause = min(FRAMES.seconds, PAUSE_SHARE * (clock.monotonic() - began))
                if pause >= LEAST_PAUSE and wake.is_set():
                    await asyncio.sleep(pause)
            elif link.owes_ack:
                await self._write_ack(stream)
            else:
                await wake.wait()

    async def _write_ack(self, stream: Stream) -> None:
        frame = self._empty()
        self._link.stamp(frame, carries=False)
        self._writing = self._clock.monotonic()
        await stream.send(frame)
        self._writing = math.inf

    async def _read(self, stream: Stream) -> None:
        link, accept, clock = self._link, self._endpoint.accept, self._clock
        while True:
            frame = await stream.receive()
            if frame is None:
                return
            self._heard = clock.monotonic()
            was_full = link.full
            if link.accept(frame):
                accept(frame)
            if was_full or link.owes_ack:
                self._wake.set()

    async def _listen(self) -> None:
        """Ends the connection when the other side has been silent for too long, or has taken nothing: it may be half
        open, or never read."""
        silence, now = self._silence, self._clock.monotonic
        while (left := min(self._heard, self._writing) + silence - now()) > 0:  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(left)


class Dialer:
    """The dialing half: connects, says hello, resumes, reconnects with back-off, until closed.

    `hello` makes the first frame of a connection from a pb.Hello that this class fills with the session and whether
    it is resumed. `unreachable` gets the reason why the other side cannot be reached, once per outage, and the reason
    of each connection that it ended because it refused a frame. `failed` gets an error of the endpoint; the session is
    then given up and a fresh one begun. Without `failed` the dialer ends, and `wait` raises the error.
    `leases`: this side's own, compared with the other's, since a side waits by its own sizes for what the other keeps;
    None: it has none.
    """

    def __init__(
        self,
        open_stream: Callable[[], DialedStream],
        hello: Callable[[pb.Hello], Any],
        endpoint: Endpoint,
        empty: Callable[[], Any],
        *,
        silence: float,
        leases: LeaseSizes | None = None,
        clock: Clock = SYSTEM_CLOCK,
        unreachable: Callable[[str], None] = lambda reason: None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self._open_stream = open_stream
        self._hello = hello
        self._endpoint = endpoint
        self._empty = empty
        self._silence = silence
        self._leases = leases
        self._clock = clock
        self._unreachable = unreachable
        self._failed = failed
        self._connection: LinkConnection | None = None
        self._link = Link()
        self._task: asyncio.Task[None] | None = None
        self.session = uuid.uuid4().hex
        self.peer = ""  # the other process's id, as its last welcome said
        self.connected = asyncio.Event()
        self._known = False  # the other side has welcomed this session

    def start(self) -> None:
        """Begins to dial. `connected` is set while a connection is up."""
        self._task = asyncio.create_task(self._run(), name="dialer")

    def notify(self) -> None:
        """Wakes the writer: the endpoint has something to send."""
        if self._connection is not None:
            self._connection.notify()

    @property
    def settled(self) -> bool:
        """Whether everything that was sent has been acknowledged."""
        return not self._link.unacknowledged()

    async def close(self) -> None:
        """Ends the session and waits for its end. An error of the endpoint is raised by `wait`, not here. Harmless
        twice."""
        task, self._task = self._task, None
        if task is not None:
            await end_all([task])

    async def wait(self) -> None:
        """Waits for an end that is not `close`: only an error of the endpoint, which is raised."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        backoff, said = Backoff(*CONNECTION, random.random), False
        while True:
            began = self._clock.monotonic()
            welcomed, reason = await self._connect()
            if not welcomed and not said:
                self._unreachable(reason)
            said = not welcomed
            if welcomed and self._clock.monotonic() - began >= CONNECTION.last:
                backoff.reset()  # it worked for a while: again at once
                continue
            await asyncio.sleep(backoff.pause())

    async def _connect(self) -> tuple[bool, str]:
        """Makes one connection, from hello to its end. Returns whether it was welcomed, and the reason of its end."""
        stream = self._open_stream()
        welcomed = given_up = False
        reason, refused = "the connection ended", ""
        try:
            anew = uuid.uuid4().hex if self._known else ""
            hello = self._hello(pb.Hello(session=self.session, resume=self._known, anew=anew))
            hello.link.ack = self._link.last_handled
            async with asyncio.timeout(self._silence):
                await stream.send(hello)
                reply = await stream.receive()
            if reply is None or not reply.HasField("welcome"):
                return False, "the other side hung up"
            again = self._welcomed(reply)
            welcomed = True
            self._connection = LinkConnection(self._link, self._endpoint, self._empty, self._silence, self._clock)
            self.connected.set()
            await self._connection.run(stream, again)
        except SessionLost as error:
            given_up, reason = True, str(error)
        except TimeoutError:
            return False, "no answer"
        except StreamClosed as closed:
            refused = str(closed) if isinstance(closed.error, UserError) else ""
            return welcomed, str(closed)
        except Exception as error:
            if self._failed is None:
                raise
            self._failed(error)
            given_up = True
        finally:
            self.connected.clear()
            self._connection = None
            stream.cancel()
            if welcomed:
                self._endpoint.broken()
            if welcomed and refused:
                self._unreachable(refused)
            if given_up:
                self._forget()
            elif not self._known:  # a hello that arrives late must not begin anew what the next one began
                self.session = uuid.uuid4().hex
        return welcomed, reason

    def _welcomed(self, reply: Any) -> list[Any]:
        """Resumes, or starts empty when the other side does not know the session. Returns the frames to send again.
        Raises SessionLost when it remembers a session that went on elsewhere since: several processes may stand behind
        one address."""
        if self._known and reply.welcome.resumed and reply.welcome.scheduler != self.peer:
            raise SessionLost(f"{reply.welcome.scheduler} remembers a session that went on at {self.peer}")
        if self._known and not reply.welcome.resumed:
            self._endpoint.lost()
            self._link = Link()
            self.session = reply.welcome.session
        resumed = self._known and reply.welcome.resumed
        if not resumed:
            self._link = Link()
        self._known = True
        if self.peer != reply.welcome.scheduler:
            self._compare(reply.welcome)
        self.peer = reply.welcome.scheduler
        self._link.acknowledged(reply.link.ack)
        self._endpoint.opened(resumed)
        return self._link.unacknowledged()

    def _compare(self, welcome: pb.Welcome) -> None:
        """Warns of leases that differ: one that ends before it is renewed ends the runs under it."""
        if self._leases is None:
            return
        # Goes with 0.3.0: schedulers of 0.1 name their heartbeat alone.
        theirs = {each.name: each.size for each in welcome.leases}
        theirs = theirs or {"heartbeat": welcome.heartbeat or self._leases.heartbeat}
        if wrong := differing(self._leases, theirs):
            _LOG.warning(
                "scheduler %s has other leases than this part (%s): runs may be ended before their time, or start "
                "elsewhere while they still run. Give all parts of a platform the same leases.yaml",
                welcome.scheduler,
                ", ".join(f"{name} {there:g} there and {here:g} here" for name, there, here in wrong),
            )

    def _forget(self) -> None:
        self._endpoint.lost()
        self._link = Link()
        self.session = uuid.uuid4().hex
        self._known = False


class Served:
    """One session on the serving side. It outlives connections, and its owner ends it by its own clock. `caller`: who
    began it, by certificate; None: a user of this machine."""

    def __init__(self, endpoint: Endpoint, caller: Caller | None = None, link: Link | None = None) -> None:
        self.endpoint = endpoint
        self.caller = caller
        self.link = link or Link()
        self.connection: LinkConnection | None = None
        self._task: asyncio.Task[Any] | None = None

    def notify(self) -> None:
        """Wakes the writer: the endpoint has something to send."""
        if self.connection is not None:
            self.connection.notify()

    async def serve(
        self, stream: Stream, hello: Any, welcome: Any, *, empty: Callable[[], Any], silence: float, clock: Clock
    ) -> None:
        """Serves one connection of this session from its hello to its end. A former connection that still seems open is
        ended first: the dialing side knows that it is gone."""
        if self._task is not None and not self._task.done():
            await end_all([self._task])
        self._task = asyncio.current_task()
        self.link.acknowledged(hello.link.ack)
        welcome.link.ack = self.link.last_handled
        await stream.send(welcome)
        self.connection = LinkConnection(self.link, self.endpoint, empty, silence, clock)
        self.endpoint.opened(welcome.welcome.resumed)
        try:
            await self.connection.run(stream, self.link.unacknowledged())
        finally:
            self.connection = None
            self.endpoint.broken()
