"""Sessions over real loopback connections that are cut, stalled and refused by a proxy between the two halves: all of
it over gRPC, over that with TLS, and over the sockets that stand for it on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from scenes.fleet import Fleet
from scenes.sessions import PATIENT, SOON, Scene, Serving

from tailrace.foundation.certificates import VARIABLE
from tailrace.model.address import SECURED
from tailrace.model.errors import InvalidRequest
from tailrace.wire.direct import SCHEME
from tailrace.wire.link import UNACKNOWLEDGED
from tailrace.wire.scheduler import SchedulerSessions
from tailrace.wire.v1 import scheduler_pb2 as pb

Scenes = Callable[..., AbstractAsyncContextManager[Scene]]


@pytest.fixture(params=["", SECURED, SCHEME], ids=["grpc", "tls", "direct"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenes:
    """Makes a scene, on each carrier."""
    if request.param == SECURED:
        monkeypatch.setenv(VARIABLE, str(Fleet(tmp_path / "fleet", monkeypatch).issue("node")))

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
        client = SchedulerSessions(s.serving.address)
        stream = client.attach_tailer()
        await stream.send(pb.TailerFrame(hello=pb.Hello(session=dialer.session, resume=True)))
        welcome = await asyncio.wait_for(stream.receive(), SOON)
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
        # And its owner is told what was refused, unless that came while something was sent
        assert s.reasons in ([], ["this cannot be right"])
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
