"""Two halves of a session with a proxy between them that cuts, stalls and refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.address import SECURED
from tailrace.model.errors import InvalidRequest
from tailrace.wire.carriers import serve_streams
from tailrace.wire.channel import serve
from tailrace.wire.direct import SCHEME
from tailrace.wire.scheduler import SchedulerSessions, serve_scheduler, sessions
from tailrace.wire.session import Dialer, Served
from tailrace.wire.stream import Listener, Stream
from tailrace.wire.v1 import scheduler_pb2 as pb

#: Seconds that anything here may take.
SOON = 20.0
#: Seconds of silence in the tests that are not about silence.
PATIENT = 60.0


class Told:
    """Lets a test wait until something is true: each change is told to it."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(SOON):
            while not true():
                await self._changed.wait()


class End(Told):
    """An endpoint that says numbers, one per frame, and writes down the numbers it hears and the fate of its
    session."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        super().__init__()
        self._make = make
        self.notify: Callable[[], None] = lambda: None
        self.left: list[int] = []
        self.said = 0
        self.composed = 0
        self.heard: list[int] = []
        self.story: list[str] = []
        self.refuses: Exception | None = None

    def say(self, count: int) -> None:
        """Says so many more numbers, in order."""
        self.left.extend(range(self.said + 1, self.said + count + 1))
        self.said += count
        self.notify()

    def opened(self, resumed: bool) -> None:
        self.story.append("resumed" if resumed else "opened")
        self.changed()

    def compose(self) -> Any | None:
        if not self.left:
            return None
        self.composed += 1
        return self._make(self.left.pop(0))

    def accept(self, frame: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.heard.append(frame.cancel[0] if isinstance(frame, pb.TailerFrame) else frame.lease_request.number)
        self.changed()

    def broken(self) -> None:
        self.story.append("broken")
        self.changed()

    def lost(self) -> None:
        self.story.append("lost")
        self.left = []
        self.changed()


class Serving(Told):
    """A scheduler that only holds sessions. A restart forgets them."""

    def __init__(self, silence: float = PATIENT, name: str = "", scheme: str = "") -> None:
        super().__init__()
        self.name = name
        self.silence = silence
        self.sessions: dict[str, Served] = {}
        self.ends: list[End] = []
        self._server: Listener | None = None
        self.address = f"{scheme}127.0.0.1:0"

    async def start(self) -> None:
        if self.address.startswith(SCHEME):
            self._server, self.address = await serve_streams(self.address, sessions(self))
        else:
            self._server, self.address = await serve(self.address, [serve_scheduler(self)])

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def attach_tailer(self, connection: Stream) -> None:
        hello = await connection.receive()
        served = self.sessions.get(hello.hello.session) if hello.hello.resume else None
        resumed = served is not None
        if served is None:
            end = End(lambda number: pb.TailerReply(lease_request=pb.LeaseRequest(number=number)))
            served = self.sessions[hello.hello.session] = Served(end)
            end.notify = served.notify
            self.ends.append(end)
        self.changed()
        welcome = pb.TailerReply(welcome=pb.Welcome(scheduler=self.name, resumed=resumed, session=hello.hello.session))
        try:
            await served.serve(
                connection, hello, welcome, empty=pb.TailerReply, silence=self.silence, clock=SYSTEM_CLOCK
            )
        except InvalidRequest:
            del self.sessions[hello.hello.session]
            raise

    async def attach_worker(self, connection: Stream) -> None:
        raise NotImplementedError

    async def execute(self, request: pb.ExecuteRequest) -> pb.ExecuteReply:
        raise NotImplementedError

    async def inspect(self) -> pb.InspectReply:
        raise NotImplementedError

    async def explain(self, request: pb.ExplainRequest) -> pb.ExplainReply:
        raise NotImplementedError


class Proxy(Told):
    """A wire that can be cut, can swallow everything silently, and can refuse connections."""

    def __init__(self, target: Callable[[], str]) -> None:
        super().__init__()
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.flows = asyncio.Event()
        self.flows.set()
        self.refuses = False
        self.refused = 0
        self.address = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            self.refused += 1
            self.changed()
            writer.transport.abort()
            return
        host, _, port = self._target().removeprefix(SCHEME).removeprefix(SECURED).rpartition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pipe(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                await self.flows.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.transport.abort()
            self._writers.discard(sink)

    def cut(self) -> None:
        """Breaks every connection, with everything on its way."""
        for writer in [*self._writers]:
            writer.transport.abort()

    async def stop(self) -> None:
        self.cut()
        self.flows.set()
        if self._server is not None:
            self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Scene:
    """A serving half, a proxy before it, and a dialing half that dials through the proxy."""

    def __init__(self, scheme: str, silence: float, server_silence: float) -> None:
        self.scheme = scheme
        self.serving = Serving(server_silence, scheme=scheme)
        self.behind = self.serving
        self.proxy = Proxy(lambda: self.behind.address)
        self.end = End(lambda number: pb.TailerFrame(cancel=[number]))
        self.silence = silence
        self.reasons: list[str] = []
        self._clients: list[SchedulerSessions] = []
        self.dialer: Dialer | None = None

    def dial(self, failed: Callable[[Exception], None] | None = None) -> Dialer:
        client = SchedulerSessions(f"{self.scheme}{self.proxy.address}")
        self._clients.append(client)
        self.dialer = Dialer(
            client.attach_tailer,
            lambda hello: pb.TailerFrame(hello=hello),
            self.end,
            pb.TailerFrame,
            silence=self.silence,
            unreachable=self._unreachable,
            failed=failed,
        )
        self.end.notify = self.dialer.notify
        self.dialer.start()
        return self.dialer

    def _unreachable(self, reason: str) -> None:
        self.reasons.append(reason)
        self.end.changed()

    @property
    def far(self) -> End:
        """The serving end of the newest session."""
        return self.serving.ends[-1]

    async def attached(self) -> None:
        await self.serving.until(lambda: self.serving.ends)
        await self.far.until(lambda: self.far.story)
        await self.end.until(lambda: self.end.story)

    async def heard_all(self) -> None:
        """Waits until everything said by one end was heard by the other, once and in order."""
        await self.far.until(lambda: len(self.far.heard) >= self.end.said)
        await self.end.until(lambda: len(self.end.heard) >= self.far.said)
        assert self.far.heard == list(range(1, self.end.said + 1))
        assert self.end.heard == list(range(1, self.far.said + 1))

    async def close(self) -> None:
        if self.dialer is not None:
            await self.dialer.close()
        for client in self._clients:
            await client.close()
        await self.serving.stop()
        await self.proxy.stop()
