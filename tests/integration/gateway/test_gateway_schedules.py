"""Schedules through a gateway: kept as they were meant, changed by one caller at a time, and made to agree with a
file."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.identity import whoami
from tailrace.gateway.environment import DeclaredFiles
from tailrace.gateway.schedules import SchedulesConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import Conflict, InvalidPayload, InvalidRequest, UnknownFunction
from tailrace.model.schedule import CatchUp, Origin, Overlap, Schedule
from tailrace.sdk.async_client import AsyncClient
from tailrace.sdk.client import Client
from tailrace.stores.schedules.sqlite import SCHEMA, SqliteSchedules
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.wire.gateway import GatewayClient

NIGHTLY = Schedule("nightly", "add", b'{"n":1}', cron="0 3 * * *", timezone="Europe/Berlin", created_by="ann@host")


@pytest.fixture
async def schedules(tmp_path: Path) -> AsyncIterator[SqliteSchedules]:
    file = SqliteFile(tmp_path / "schedules.db", SCHEMA, name="schedules")
    await file.open()
    yield SqliteSchedules(file)
    await file.close()


def server(stores: Any, schedules: SqliteSchedules | None, file: dict[str, Any] | None = None) -> GatewayServer:
    kept = None if file is None else SchedulesConfig.model_validate({"schedules": file}).kept()
    gateway: GatewayServer = replace(stores, schedules=schedules).gateway(declared=DeclaredFiles(schedules=kept))
    return gateway


@pytest.fixture
async def operator(stores: Any, schedules: SqliteSchedules) -> AsyncIterator[GatewayClient]:
    gateway = server(stores, schedules)
    await gateway.start()
    async with GatewayClient(gateway.address) as client:
        yield client
    await gateway.stop()


async def test_a_schedule_is_kept_as_it_was_meant_and_shows_its_next_runs(operator: GatewayClient) -> None:
    wanted = replace(
        NIGHTLY,
        priority="reporting",
        collection="c",
        tenant="t",
        overlap=Overlap.QUEUE,
        catch_up=CatchUp.ALL,
        catch_up_max=7,
        grace=30.0,
        jitter=1.5,
        starts=2e9,
        until=3e9,
        max_runs=5,
    )
    view = await operator.put_schedule(wanted)
    assert view.schedule == replace(wanted, created_at=view.schedule.created_at) and view.schedule.created_at > 1.7e9
    assert (view.state, view.runs, view.passed_over, len(view.next)) == ("active", 0, 0, 5)
    assert all(at > 2e9 for at in view.next) and view.next == sorted(view.next)
    assert await operator.schedules(next=10) == [view] == await operator.schedules("nightly", next=10)
    assert (await operator.put_schedule(replace(NIGHTLY, name="own", created_by=""))).schedule.created_by == whoami()


async def test_the_same_again_is_harmless_and_another_of_the_name_needs_a_word(operator: GatewayClient) -> None:
    first = await operator.put_schedule(NIGHTLY)
    assert await operator.put_schedule(NIGHTLY) == first
    other = replace(NIGHTLY, cron="0 4 * * *")
    with pytest.raises(Conflict, match=r"nightly' already \(0 3 .*--replace"):
        await operator.put_schedule(other)
    changed = await operator.put_schedule(other, replace_it=True)
    assert (changed.schedule.cron, changed.schedule.created_at) == ("0 4 * * *", first.schedule.created_at)


async def test_pause_resume_run_now_and_remove(operator: GatewayClient, schedules: SqliteSchedules) -> None:
    await operator.put_schedule(NIGHTLY)
    for _ in range(2):
        paused = await operator.change_schedule("nightly", "pause")
        assert (paused.state, paused.next) == ("paused", [])
    run = await operator.change_schedule("nightly", "run-now")
    assert [(each.position, each.by_hand) for each in run.last] == [(0, True)]
    for _ in range(2):
        assert (await operator.change_schedule("nightly", "resume")).state == "active"
    [view] = await operator.schedules("nightly", last=10)
    assert [each.position for each in view.last] == [0]
    assert (await operator.change_schedule("nightly", "remove")).schedule.name == "nightly"
    assert await operator.schedules() == [] and len((await schedules.read(0, 9, 1 << 20)).runs) == 1
    with pytest.raises(InvalidRequest, match="no schedule is named 'nightly'"):
        await operator.change_schedule("nightly", "pause")
    with pytest.raises(InvalidRequest, match="expected one of pause, resume"):
        await operator.change_schedule("nightly", "forget")


#: Changes of a good schedule, with the error and its words.
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"function": "ad"}, UnknownFunction, "did you mean 'add'"),
    ({"cron": "0 25 * * *"}, InvalidRequest, 'nightly: cron: "0 25 .*column 3: bad hour "25"'),
    ({"timezone": "Europe/Berln"}, InvalidRequest, "did you mean 'Europe/Berlin'"),
    ({"every": 5.0}, InvalidRequest, "one of cron, every and at"),
    ({"cron": "", "at": 1000.0}, InvalidRequest, "at is in the past"),
    ({"until": 1000.0}, InvalidRequest, "never run"),
    ({"jitter": float("nan")}, InvalidRequest, "jitter is nan"),
    ({"payload": bytes((1 << 20) + 1)}, InvalidPayload, "store the data elsewhere"),
    ({"overlap": "sometimes"}, InvalidRequest, "expected one of skip, queue, allow"),
    ({"name": "a b"}, InvalidRequest, "not a schedule's name"),
]


async def test_what_means_nothing_is_refused(operator: GatewayClient) -> None:
    for changes, error, said in REFUSED:
        with pytest.raises(error, match=said):
            await operator.put_schedule(replace(NIGHTLY, **changes))
    assert await operator.schedules() == []


async def test_what_nobody_said_has_its_default(operator: GatewayClient) -> None:
    at = SYSTEM_CLOCK.wall() + 3600
    blank = replace(NIGHTLY, cron="", at=at, timezone="", catch_up="", overlap="", catch_up_max=0, grace=0.0)
    said = (await operator.put_schedule(blank)).schedule
    assert said == replace(Schedule("nightly", "add"), payload=said.payload, at=at, created_by="ann@host",
                           created_at=said.created_at, catch_up=CatchUp.LATEST)  # fmt: skip


async def test_a_file_makes_its_schedules_what_it_says_and_leaves_the_others(
    stores: Any, schedules: SqliteSchedules
) -> None:
    async def start(file: dict[str, Any] | None) -> dict[str, Any]:
        gateway = server(stores, schedules, file)
        await gateway.start()
        try:
            async with GatewayClient(gateway.address) as client:
                if file is not None and "f1" in file:
                    with pytest.raises(InvalidRequest, match=r"kept by schedules\.yaml"):
                        await client.change_schedule("f1", "remove")
                    with pytest.raises(InvalidRequest, match=r"kept by schedules\.yaml"):
                        await client.put_schedule(replace(NIGHTLY, name="f1"), replace_it=True)
                return {view.schedule.name: view for view in await client.schedules()}
        finally:
            await gateway.stop()

    one, two = {"function": "add", "every": "1h", "arguments": {"n": 1}}, {"function": "later", "cron": "@daily"}
    # Given one made by hand, and a file that names two, one of them for a function that no worker has announced
    gateway = server(stores, schedules)
    await gateway.start()
    async with GatewayClient(gateway.address) as client:
        await client.put_schedule(NIGHTLY)
    await gateway.stop()
    first = await start({"f1": one, "f2": two})
    assert sorted(first) == ["f1", "f2", "nightly"]
    assert (first["f1"].schedule.payload, first["f1"].schedule.origin) == (b'{"n":1}', Origin.FILE)
    # When nothing changed, then nothing is touched: what was missed meanwhile is still to be caught up with
    before = await schedules.get("f1")
    assert await start({"f1": one, "f2": two}) == first and await schedules.get("f1") == before
    # When the file says something else, or nothing any more, then so it is; without the file nothing changes
    second = await start({"f1": one | {"every": "2h"}})
    assert sorted(second) == ["f1", "nightly"] and second["f1"].schedule.every == 7200
    assert await start(None) == second
    assert sorted(await start({})) == ["nightly"]


async def test_a_gateway_without_schedules_says_so(stores: Any) -> None:
    gateway = server(stores, None)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as client:
            with pytest.raises(InvalidRequest, match="no store of schedules"):
                await client.schedules()
    finally:
        await gateway.stop()


async def test_a_program_keeps_changes_pauses_and_removes_one(stores: Any, schedules: SqliteSchedules) -> None:
    # Given a client of each face
    gateway = server(stores, schedules, {"of-file": {"function": "add", "every": "1h"}})
    await gateway.start()
    try:
        async with AsyncClient(gateway.address) as client:
            # When a program makes one, and makes it again as programs do when they start
            made = await client.schedule("hourly", "add", n=1, every="1h")
            assert await client.schedule("hourly", "add", n=1, every="1h") == made
            assert (made.state, len(made.next), made.schedule.payload) == ("active", 10, b'{"n":1}')
            # Then another one of that name needs a word, and is one with it
            with pytest.raises(Conflict, match="hourly"):
                await client.schedule("hourly", "add", n=1, cron="@hourly", timezone="Europe/Berlin")
            kept = await client.schedule("hourly", "add", n=1, cron="@hourly", timezone="Europe/Berlin", replace=True)
            assert (kept.schedule.cron, kept.schedule.timezone) == ("@hourly", "Europe/Berlin")
            with pytest.raises(InvalidRequest, match='column 1: bad minute "99"'):
                await client.schedule("bad", "add", cron="99 * * * *")
            with pytest.raises(UnknownFunction):
                await client.schedule("bad", "nobody", every=60)
            # And it is listed, paused, resumed and removed
            assert (await client.pause_schedule("hourly")).state == "paused"
            assert [view.schedule.name for view in await client.schedules()] == ["hourly", "of-file"]
            assert (await client.resume_schedule("hourly")).state == "active"
            assert await asyncio.to_thread(_blocking, gateway.address) == (True, False)
            with pytest.raises(InvalidRequest, match=r"kept by schedules\.yaml"):
                await client.unschedule("of-file")
    finally:
        await gateway.stop()


def _blocking(address: str) -> tuple[bool, bool]:
    with Client(address) as client:
        [view] = client.schedules("hourly", next=3)
        assert len(view.next) == 3
        client.pause_schedule("hourly")
        client.resume_schedule("hourly")
        client.schedule("hourly", "add", every=60, replace=True)
        return client.unschedule("hourly"), client.unschedule("hourly")


async def test_what_was_before_is_told_so_that_it_can_be_put_back(
    operator: GatewayClient,
) -> None:
    # Given a schedule that is replaced by another one, paused and removed, each for a reason
    wanted = Schedule("nightly", "add", b'{"a":1,"b":2}', cron="0 3 * * *", timezone="Europe/Berlin", tenant="acme")
    await operator.put_schedule(wanted)
    once = Schedule("nightly", "add", b'{"a":1,"b":3}', at=4_000_000_000.0, overlap=Overlap.QUEUE)
    await operator.put_schedule(once, True, "once is enough")
    async with AsyncClient(operator.address) as client:
        await client.pause_schedule("nightly", why="not now")
        await client.unschedule("nightly", why="never")
    # Then each act has the whole of it before, with its payload's size and hash, and why
    made, replaced, paused, removed = reversed(await operator.acts())
    assert (made.before, made.why) == ("", "")
    before, after = json.loads(replaced.before), json.loads(replaced.after)
    hash = hashlib.sha256(wanted.payload).hexdigest()
    assert before["payload"] == {"bytes": len(wanted.payload), "sha256": hash}
    said = {name: before[name] for name in ("function", "cron", "timezone", "tenant", "overlap", "state", "created_by")}
    assert said == {
        "function": "add",
        "cron": "0 3 * * *",
        "timezone": "Europe/Berlin",
        "tenant": "acme",
        "overlap": "skip",
        "state": "active",
        "created_by": whoami(),
    }
    assert (after["at"], after["overlap"]) == ("2096-10-02T07:06:40+00:00", "queue") and "every" not in after
    assert json.loads(paused.before)["state"] == "active" and json.loads(removed.before)["state"] == "paused"
    assert json.loads(removed.before)["at"] == after["at"]
    assert [each.why for each in (replaced, paused, removed)] == ["once is enough", "not now", "never"]
