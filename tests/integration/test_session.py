"""Sessions over real loopback connections that are cut, stalled and refused by a proxy between the two halves: all of
it over gRPC, and over the sockets that stand for it on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
import pytest

from tailrace.sdk.clock import SYSTEM_CLOCK
from tailrace.sdk.model.errors import InvalidRequest
from tailrace.sdk.wire.channel import serve
from tailrace.sdk.wire.direct import SCHEME
from tailrace.sdk.wire.link import UNACKNOWLEDGED
from tailrace.sdk.wire.scheduler import SchedulerClient, serve_scheduler
from tailrace.sdk.wire.session import Dialer, Served
from tailrace.sdk.wire.v1 import scheduler_pb2 as pb

#: Seconds that anything here may take.
SOON = 20.0
#: Seconds of silence in the tests that are not about silence.
PATIENT = 60.0


class Told:
    """Lets a test wait until something is true: whoever changes something says so."""

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
    """An endpoint that says numbers, one per frame, and writes down what it hears and what becomes of its session."""

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
        """Has so many more numbers said, in order."""
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
        self._server: grpc.aio.Server | None = None
        self.address = f"{scheme}127.0.0.1:0"

    async def start(self) -> None:
        self._server, self.address = await serve(self.address, [serve_scheduler(self)])

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def attach_tailer(self, connection: Any) -> None:
        hello = await connection.read()
        served = self.sessions.get(hello.hello.session) if hello.hello.resume else None
        resumed = served is not None
        if served is None:
            end = End(lambda number: pb.TailerReply(lease_request=pb.LeaseRequest(number=number)))
            served = self.sessions[hello.hello.session] = Served(end)
            end.notify = served.notify
            self.ends.append(end)
        self.changed()
        welcome = pb.TailerReply(welcome=pb.Welcome(scheduler=self.name, resumed=resumed))
        try:
            await served.serve(
                connection, hello, welcome, empty=pb.TailerReply, silence=self.silence, clock=SYSTEM_CLOCK
            )
        except InvalidRequest:
            del self.sessions[hello.hello.session]
            raise

    async def attach_worker(self, connection: Any) -> None:
        raise NotImplementedError

    async def execute(self, request: pb.ExecuteRequest) -> pb.ExecuteReply:
        raise NotImplementedError

    async def inspect(self) -> pb.InspectReply:
        raise NotImplementedError

    async def explain(self, id: str) -> pb.ExplainReply:
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
        host, _, port = self._target().removeprefix(SCHEME).rpartition(":")
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
        """Breaks every connection, with whatever is on its way."""
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
        self._clients: list[SchedulerClient] = []
        self.dialer: Dialer | None = None

    def dial(self, failed: Callable[[Exception], None] | None = None) -> Dialer:
        client = SchedulerClient(f"{self.scheme}{self.proxy.address}")
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
        """Everything said by one end was heard by the other, once and in order."""
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


Scenes = Callable[..., AbstractAsyncContextManager[Scene]]


@pytest.fixture(params=["", SCHEME], ids=["grpc", "direct"])
def scene(request: pytest.FixtureRequest) -> Scenes:
    """Makes a scene, on either carrier."""

    @asynccontextmanager
    async def made(silence: float = PATIENT, server_silence: float = PATIENT) -> AsyncIterator[Scene]:
        each = Scene(request.param, silence, server_silence)
        await each.serving.start()
        await each.proxy.start()
        try:
            yield each
        finally:
            await each.close()

    return made


async def test_frames_arrive_in_order_both_ways_and_are_acknowledged(scene: Scenes) -> None:
    async with scene() as s:
        dialer = s.dial()
        await s.attached()
        s.end.say(700)  # more than may be unacknowledged
        s.far.say(700)
        await s.heard_all()
        assert s.end.story == s.far.story == ["opened"]
        assert len(dialer._link.unacknowledged()) < UNACKNOWLEDGED


async def test_cuts_lose_nothing_repeat_nothing_and_resume(scene: Scenes) -> None:
    async with scene() as s:
        # Given a conversation under way
        s.dial()
        await s.attached()
        s.end.say(1500)
        s.far.say(1500)
        # When its connection is cut again and again, at points that the traffic chooses
        for part in range(1, 6):
            await s.far.until(lambda: len(s.far.heard) >= 200 * part)  # noqa: B023 - awaited here
            await s.end.until(lambda: s.end.story[-1] != "broken")
            s.proxy.cut()
            await s.end.until(lambda: s.end.story.count("broken") == part)  # noqa: B023
        # Then it is one session, and everything arrives once
        await s.heard_all()
        assert s.end.story[:3] == ["opened", "broken", "resumed"]
        assert "lost" not in s.end.story
        assert len(s.serving.sessions) == 1


async def test_a_cut_while_nothing_flows_is_resumed_and_what_came_up_meanwhile_is_said(scene: Scenes) -> None:
    async with scene() as s:
        s.dial()
        await s.attached()
        s.proxy.refuses = True
        s.proxy.cut()
        await s.end.until(lambda: s.end.story == ["opened", "broken"])
        s.end.say(3)
        s.far.say(3)
        s.proxy.refuses = False
        await s.heard_all()
        assert s.end.story == ["opened", "broken", "resumed"]


async def test_a_restarted_server_knows_no_session_and_a_fresh_one_begins(scene: Scenes) -> None:
    async with scene() as s:
        # Given a session with frames that nobody will ever acknowledge
        dialer = s.dial()
        await s.attached()
        s.end.say(5)
        await s.far.until(lambda: len(s.far.heard) == 5)
        # When the server dies and another one comes, under the same address
        await s.serving.stop()
        s.serving.sessions.clear()
        await s.end.until(lambda: "broken" in s.end.story)
        await s.serving.start()
        await s.end.until(lambda: s.end.story[-1] == "opened")
        # Then the owner is told before it may speak again, and both ends count from one
        assert s.end.story == ["opened", "broken", "lost", "opened"]
        assert dialer.settled
        s.end.said = 0
        s.end.say(4)
        await s.far.until(lambda: len(s.far.heard) == 4)
        assert s.far.heard == [1, 2, 3, 4]


async def test_a_session_that_went_on_elsewhere_is_not_resumed_where_it_was_before(scene: Scenes) -> None:
    async with scene() as s:
        # Given a session with one scheduler, which knows it when its dialer has gone on to another, at one address
        other = Serving(name="the other one", scheme=s.scheme)
        await other.start()
        dialer = s.dial()
        await s.attached()
        s.end.say(3)
        await s.far.until(lambda: len(s.far.heard) == 3)
        s.behind = other
        s.proxy.cut()
        await s.end.until(lambda: s.end.story[-2:] == ["lost", "opened"])
        # When it finds the first one again
        s.behind = s.serving
        s.proxy.cut()
        await s.serving.until(lambda: len(s.serving.ends) == 2)
        await s.end.until(lambda: s.end.story.count("opened") == 3)
        # Then what that one remembers is nothing to it: a fresh session begins, and all that is said is heard
        assert s.end.story == ["opened", *["broken", "lost", "opened"] * 2]
        assert any("went on" in reason for reason in s.reasons)
        s.end.said = 0
        s.end.say(4)
        await s.far.until(lambda: len(s.far.heard) == 4)
        assert s.far.heard == [1, 2, 3, 4]
        await dialer.close()
        await other.stop()


async def test_silence_ends_a_connection_that_only_seems_to_be_open(scene: Scenes) -> None:
    async with scene(silence=0.3) as s:
        # Given a connection on which nothing gets through any more
        s.dial()
        await s.attached()
        s.proxy.flows.clear()
        s.end.say(3)
        # When the dialing half has heard nothing for so long, then it gives the connection up
        await s.end.until(lambda: s.end.story[:2] == ["opened", "broken"])
        # And when the network is back, then the session goes on
        s.proxy.cut()
        s.proxy.flows.set()
        await s.far.until(lambda: len(s.far.heard) == 3)
        assert s.far.heard == [1, 2, 3]
        assert len(s.serving.sessions) == 1


async def test_the_serving_half_ends_a_silent_connection_too(scene: Scenes) -> None:
    async with scene(server_silence=0.3) as s:
        s.dial()
        await s.attached()
        s.proxy.flows.clear()
        await s.far.until(lambda: "broken" in s.far.story)
        s.proxy.cut()
        s.proxy.flows.set()
        s.far.say(2)
        s.end.say(2)
        await s.heard_all()


async def test_a_second_connection_of_a_session_ends_the_first(scene: Scenes) -> None:
    async with scene() as s:
        # Given a session whose connection still seems open to the server
        dialer = s.dial()
        await s.attached()
        # When the same session says hello on another connection
        client = SchedulerClient(s.serving.address)
        stream: Any = client.attach_tailer()
        await stream.write(pb.TailerFrame(hello=pb.Hello(session=dialer.session, resume=True)))
        welcome = await asyncio.wait_for(stream.read(), SOON)
        # Then it is resumed there, after the first one ended
        assert welcome.welcome.resumed
        await s.far.until(lambda: s.far.story[:3] == ["opened", "broken", "resumed"])
        stream.cancel()
        await client.close()


async def test_an_unreachable_server_is_said_once_per_outage(scene: Scenes) -> None:
    async with scene() as s:
        s.proxy.refuses = True
        s.dial()
        await s.proxy.until(lambda: s.proxy.refused >= 3)
        assert len(s.reasons) == 1
        s.proxy.refuses = False
        await s.attached()
        s.proxy.refuses = True
        s.proxy.cut()
        await s.end.until(lambda: len(s.reasons) == 2)
        s.proxy.refuses = False
        await s.end.until(lambda: s.end.story[-1] == "resumed")
        assert len(s.reasons) == 2


async def test_connected_is_set_while_a_connection_is_up(scene: Scenes) -> None:
    async with scene() as s:
        dialer = s.dial()
        assert not dialer.connected.is_set()
        await asyncio.wait_for(dialer.connected.wait(), SOON)
        s.proxy.refuses = True
        s.proxy.cut()
        await s.end.until(lambda: "broken" in s.end.story)
        assert not dialer.connected.is_set()


async def test_an_error_of_the_dialing_endpoint_ends_its_dialer_with_it(scene: Scenes) -> None:
    async with scene() as s:
        dialer = s.dial()
        await s.attached()
        s.end.refuses = RuntimeError("this cannot be right")
        s.far.say(1)
        with pytest.raises(RuntimeError, match="this cannot be right"):
            await asyncio.wait_for(dialer.wait(), SOON)
        await s.far.until(lambda: "broken" in s.far.story)


async def test_an_owner_that_is_told_of_errors_gets_a_fresh_session_after_one(scene: Scenes) -> None:
    async with scene() as s:
        # Given an owner whose endpoint cannot handle a frame
        errors: list[Exception] = []
        s.dial(errors.append)
        await s.attached()
        s.end.refuses = ValueError("this cannot be read")
        s.far.say(1)
        await s.end.until(lambda: "lost" in s.end.story)
        # Then it is told why, and may go on with a session that starts empty
        assert [str(error) for error in errors] == ["this cannot be read"]
        s.end.refuses = None
        await s.end.until(lambda: s.end.story == ["opened", "broken", "lost", "opened"])
        s.end.say(2)
        await s.far.until(lambda: s.far.heard == [1, 2])


async def test_an_error_of_the_serving_endpoint_reaches_its_server_and_what_it_forgets_begins_anew(
    scene: Scenes,
) -> None:
    async with scene() as s:
        s.dial()
        await s.attached()
        s.far.refuses = InvalidRequest("this cannot be right")
        s.end.say(1)
        await s.end.until(lambda: s.end.story == ["opened", "broken", "lost", "opened"])
        assert s.serving.ends[0].story == ["opened", "broken"]
        s.end.said = 0
        s.end.say(2)
        await s.heard_all()


async def test_an_end_that_misses_a_frame_makes_a_fresh_session(scene: Scenes) -> None:
    async with scene() as s:
        # Given a serving end that skips a number: the two ends no longer speak of the same session
        dialer = s.dial()
        await s.attached()
        former = dialer.session
        served = s.serving.sessions[former]
        served.link.stamp(pb.TailerReply())
        s.far.say(1)
        # Then the dialing end gives the session up and begins another one
        await s.end.until(lambda: s.end.story == ["opened", "broken", "lost", "opened"])
        assert dialer.session != former


async def test_close_ends_the_connection_and_is_harmless_twice(scene: Scenes) -> None:
    async with scene() as s:
        dialer = s.dial()
        await s.attached()
        await dialer.close()
        await dialer.close()
        await s.far.until(lambda: s.far.story == ["opened", "broken"])
        assert s.end.story == ["opened", "broken"]
