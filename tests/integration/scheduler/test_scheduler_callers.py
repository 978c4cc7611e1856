"""Sessions of callers that are known by certificate: they go on under the same role and name, and under no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet
from scenes.scheduler_place import FakeTailer

from tailrace.foundation.peer_check import GRANTS
from tailrace.model.errors import InvalidRequest, UnknownFunction
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.grants import read_grants
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Kind
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.convert import function_to_wire
from tailrace.wire.scheduler import SchedulerClient, SchedulerSessions
from tailrace.wire.stream import StreamClosed
from tailrace.wire.v1 import scheduler_pb2 as pb


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path / "fleet", monkeypatch)


@pytest.fixture
async def scheduler(fleet: Fleet) -> AsyncIterator[SchedulerServer]:
    server = SchedulerServer(SchedulerConfig(listen="tls:127.0.0.1:0"), LeaseSizes.of_heartbeat(1.0))
    with fleet.as_(fleet.issue("scheduler")):
        await server.start()
    yield server
    await server.stop()


class Forgotten(Exception):
    """An end of a connection of which this side does not know the reason."""


async def hello(
    address: str, session: str, *, resume: bool = False, tailer: bool = False, functions: tuple[str, ...] = ()
) -> Any:
    """Reads the answer to a connection's first frame. Raises its refusal: where that comes while the frame is sent,
    gRPC forgets it, and the next connection hears it."""
    while True:
        with contextlib.suppress(Forgotten):
            return await first(address, session, resume, tailer, functions)


async def first(address: str, session: str, resume: bool, tailer: bool, functions: tuple[str, ...]) -> Any:
    sessions = SchedulerSessions(address)
    stream = sessions.attach_tailer() if tailer else sessions.attach_worker()
    specs = [function_to_wire(FunctionSpec(name)) for name in functions]
    said = pb.Hello(session=session, name="x", resume=resume, functions=specs)
    try:
        async with asyncio.timeout(20):
            await stream.send(pb.TailerFrame(hello=said) if tailer else pb.WorkerFrame(hello=said))
            return (await stream.receive()).welcome
    except StreamClosed as closed:
        raise closed.error or Forgotten from None
    finally:
        await sessions.close()


async def test_a_session_is_resumed_by_who_began_it(fleet: Fleet, scheduler: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("worker", "w1")):
        assert not (await hello(scheduler.address, "s", resume=False)).resumed
        assert (await hello(scheduler.address, "s", resume=True)).resumed
    with fleet.as_(fleet.issue("worker", "w1")):  # another certificate of the same name
        assert (await hello(scheduler.address, "s", resume=True)).resumed


@pytest.mark.parametrize("resume", [True, False])
async def test_nobody_else_resumes_it_nor_takes_its_place(
    fleet: Fleet, scheduler: SchedulerServer, resume: bool
) -> None:
    with fleet.as_(fleet.issue("worker", "w1")):
        await hello(scheduler.address, "s", resume=False)
    said = "was begun by worker w1 of fleet f1, not by worker w2 of fleet f1"
    with fleet.as_(fleet.issue("worker", "w2")), pytest.raises(InvalidRequest, match=said):
        await hello(scheduler.address, "s", resume=resume)
    said = "not by tailer w1 of fleet f1: a session goes on under the same role"
    with fleet.as_(fleet.issue("tailer", "w1")), pytest.raises(InvalidRequest, match=said):
        await hello(scheduler.address, "s", resume=resume, tailer=True)
    with fleet.as_(fleet.issue("worker", "w1")):
        assert (await hello(scheduler.address, "s", resume=True)).resumed


@pytest.mark.parametrize(
    ("role", "tailer"), [("worker", True), ("tailer", False), ("client", False), ("operator", True)]
)
async def test_a_role_attaches_as_what_it_is(fleet: Fleet, scheduler: SchedulerServer, role: str, tailer: bool) -> None:
    with fleet.as_(fleet.issue(role)), pytest.raises(InvalidRequest, match="may not call Scheduler/Attach"):
        await hello(scheduler.address, "s", resume=False, tailer=tailer)
    assert "s" not in {*scheduler.core.workers, *scheduler.core.tailers}


@pytest.fixture
async def granting(fleet: Fleet) -> AsyncIterator[SchedulerServer]:
    """A scheduler that gives some callers less than their roles."""
    given = GRANTS.set(
        read_grants(
            {
                "worker/ml-*": ["run:ml.*"],
                "worker/idle": [],
                "client/shop": ["submit:pay@acme"],
                "tailer/crm-*": ["submit:crm.*@acme"],
            }
        )
    )
    try:
        server = SchedulerServer(SchedulerConfig(listen="tls:127.0.0.1:0"), LeaseSizes.of_heartbeat(1.0))
        with fleet.as_(fleet.issue("scheduler")):
            await server.start()
    finally:
        GRANTS.reset(given)
    yield server
    await server.stop()


async def test_a_worker_announces_only_what_it_may_run(fleet: Fleet, granting: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("worker", "ml-1")):
        await hello(granting.address, "s", functions=("ml.train", "ml.score"))
        with pytest.raises(InvalidRequest, match="worker ml-1 of fleet f1 may not do this: it needs the right run:pay"):
            await hello(granting.address, "t", functions=("ml.train", "pay"))
    with (
        fleet.as_(fleet.issue("worker", "idle")),
        pytest.raises(InvalidRequest, match="needs the right run:pay, and has none"),
    ):
        await hello(granting.address, "u", functions=("pay",))
    with fleet.as_(fleet.issue("worker", "other")):  # of which nobody says anything
        await hello(granting.address, "v", functions=("pay",))
    assert not {"t", "u"} & {*granting.core.workers}


async def test_no_worker_attaches_with_the_platforms_own_functions(fleet: Fleet, scheduler: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("worker", "w1")):
        with pytest.raises(InvalidRequest, match="as only the platform's own do"):
            await hello(scheduler.address, "t", functions=("tailrace.callback",))
        sessions = SchedulerSessions(scheduler.address)
        with pytest.raises(InvalidRequest, match="as only the platform's own do"):
            await in_pools(sessions, "u", [("default", ["tailrace.callback"])], [])
    await sessions.close()


async def test_a_workers_pools_serve_only_what_it_may_run(fleet: Fleet, granting: SchedulerServer) -> None:
    # Given a worker that may run ml.*, and announces nothing else
    with fleet.as_(fleet.issue("worker", "ml-1")):
        sessions = SchedulerSessions(granting.address)
        for number, pools in enumerate(([("default", ["pay"])], [("default", ["ml.train"]), ("more", ["pay"])])):
            # When its pools serve what it did not announce, Then that is refused as what it announces is
            with pytest.raises(InvalidRequest, match="it needs the right run:pay"):
                await in_pools(sessions, f"s{number}", pools, [])
        # And pools that it changes later serve nothing more
        with pytest.raises(InvalidRequest, match="changes its pool 'default', which its hello did not name with these"):
            await in_pools(sessions, "s2", [("default", ["ml.train"])], [("default", ["ml.train", "pay"])])
    await sessions.close()
    assert "pay" not in granting.core.roster.functions


async def in_pools(sessions: SchedulerSessions, session: str, pools: list[Any], later: list[Any]) -> None:
    """Runs a worker's session with these pools, and other ones later, until it ends. Raises the error that ends it."""

    def named(some: list[Any]) -> list[pb.Pool]:
        return [pb.Pool(name=name, functions=functions, slots=1, limit=1) for name, functions in some]

    while True:
        stream = sessions.attach_worker()
        try:
            async with asyncio.timeout(20):
                await stream.send(pb.WorkerFrame(hello=pb.Hello(session=session, name="x", pools=named(pools))))
                await stream.receive()
                frame = pb.WorkerFrame(pools=named(later))
                frame.link.seq = 1
                await stream.send(frame)
                while await stream.receive() is not None:
                    pass
                return
        except StreamClosed as closed:
            if closed.error is not None:
                raise closed.error from None


async def test_a_tailer_pushes_only_what_it_may_submit(fleet: Fleet, granting: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("tailer", "crm-1")):
        sessions = SchedulerSessions(granting.address)
    try:
        # Given a tailer that pushes what it may, in two frames
        tailer = FakeTailer(sessions)
        told: list[str] = []
        tailer.dialer._unreachable = told.append
        tailer.dialer.start()
        await tailer.until(lambda: tailer.request)
        refs = tailer.push(Kind("crm.mail", 1, "", "acme"))
        refs += tailer.push(Kind("crm.mail", 1, "", "acme"), Kind("crm.call", 1, "", "acme"))
        ends = await tailer.ended(refs)  # of functions that no worker runs
        assert {each and each.outcome for each in ends} == {Outcome.HELD} and not tailer.losses
        for other, says in (
            (Kind("pay", 1, "", "acme"), "submit:pay@acme"),
            (Kind("crm.mail", 1, "", "b"), "submit:crm.mail@b"),
            (Kind("crm.mail", 1), "submit:crm.mail"),
        ):
            # When it pushes anything else, Then its session is over, it is told so, and nothing of that was taken
            losses = tailer.losses
            while not any(f"needs the right {says}, and has" in each for each in told):
                tailer.push(other)
                await tailer.until(lambda before=losses: tailer.losses > before)  # type: ignore[misc]
                losses = tailer.losses
        assert all("tailer crm-1 of fleet f1 may not do this" in each for each in told)
        assert len(tailer.ends) == len(refs)
        await tailer.dialer.close()
    finally:
        await sessions.close()


async def test_a_tailer_of_which_nobody_says_anything_pushes_all(fleet: Fleet, granting: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("tailer", "other")):
        sessions = SchedulerSessions(granting.address)
    tailer = FakeTailer(sessions)
    tailer.dialer.start()
    try:
        await tailer.until(lambda: tailer.request)
        await tailer.ended(tailer.push(Kind("pay", 1)))
        assert tailer.losses == 0
    finally:
        await tailer.dialer.close()
        await sessions.close()


async def test_a_client_executes_only_what_it_may_submit(fleet: Fleet, granting: SchedulerServer) -> None:
    with fleet.as_(fleet.issue("client", "shop")):
        client = SchedulerClient(granting.address)
        try:
            with pytest.raises(UnknownFunction):  # which is further than whoever may not
                await client.execute("pay", tenant="acme", timeout=20)
            for other in (
                {"function": "pay"},
                {"function": "pay", "tenant": "b"},
                {"function": "refund", "tenant": "acme"},
            ):
                with pytest.raises(
                    InvalidRequest, match="client shop of fleet f1 may not do this: it needs the right submit:"
                ):
                    await client.execute(**other, timeout=20)
            with pytest.raises(InvalidRequest, match="needs the right read, and has submit:pay@acme"):
                await client.explain("x")
        finally:
            await client.close()
