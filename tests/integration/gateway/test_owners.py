"""Owners of functions: they see and change everything of their functions, and know nothing of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenes.token_door import Door

from tailrace.model.dead_letter import DeadLetter, LetterFilter
from tailrace.model.errors import Conflict, InvalidRequest
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.schedule import Schedule
from tailrace.model.workload import Kind
from tailrace.stores.schedules.sqlite import SCHEMA, SqliteSchedules
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.wire.gateway import GatewayClient

#: The rights of an owner.
OWNER = ("read:add@acme", "operate:add@acme", "submit:add@acme")


@pytest.fixture
async def stores(tmp_path: Path, open_stores: Callable[[Path], Any]) -> AsyncIterator[Any]:
    """Stores of a gateway, with schedules."""
    file = SqliteFile(tmp_path / "schedules.db", SCHEMA, name="schedules")
    await file.open()
    async with open_stores(tmp_path) as opened:
        await opened.control.register([FunctionSpec("add"), FunctionSpec("send_email")])
        yield replace(opened, schedules=SqliteSchedules(file))
    await file.close()


def letter(id: str, function: str, tenant: str = "", collection: str = "") -> DeadLetter:
    return DeadLetter(id, "orders", Kind(function, 1, collection, tenant), b"{}", "fatal", "bad", 3, 1, 1.0, 2.0)


async def test_an_owner_sees_its_own_letter_and_no_other_one(door: Door) -> None:
    # Given letters of an owner, of another tenant, of none, and of another function
    others = [letter("b", "add", "other"), letter("c", "add"), letter("d", "send_email", "acme")]
    await door.stores.dead_letters.add([letter("a", "add", "acme"), letter("m", "add", "acme", "mails"), *others])
    secret = await door.made(*OWNER)
    with door.as_(secret) as address:
        async with GatewayClient(address) as owner:
            # When it asks for them by their ids, Then its own are shown, and the others are as unknown as none
            assert (await owner.dead_letter("a")).payload == b"{}"
            assert (await owner.dead_letter("m")).kind.collection == "mails"
            for other in ("b", "c", "d", "z"):
                with pytest.raises(InvalidRequest) as refused:
                    await owner.dead_letter(other)
                assert str(refused.value).startswith(f"there is no dead letter '{other}'; `tailrace dead list` shows")
            # And what is by a filter stays as it was
            which = LetterFilter(function="add", tenant="acme")
            assert [each.id for each in (await owner.dead_letters(which)).letters] == ["a", "m"]
            with pytest.raises(InvalidRequest, match="needs the right read, and has"):
                await owner.dead_letters()
            for call in (owner.redrive, owner.purge):
                with pytest.raises(InvalidRequest, match="needs the right operate, and has"):
                    await call(LetterFilter(tailer="orders"))
            # And those that it names by their ids, with those of others among them, are its own alone
            named = LetterFilter(ids=("a", "b", "d", "z"))
            assert [each.id for each in (await owner.dead_letters(named)).letters] == ["a"]
            assert [(each.function, each.count) for each in (await owner.count_dead(named)).counts] == [("add", 1)]
            assert [each.id for each in (await owner.redrive(named)).letters] == ["a"]
            assert await owner.purge(LetterFilter(ids=("b", "m"), function="add")) == {"add": 1}
            with pytest.raises(InvalidRequest, match="there is no dead letter 'b'"):
                await owner.purge(LetterFilter(ids=("b", "d"), function="add"))
    assert {each.id for each in await door.stores.dead_letters.list(LetterFilter(), 10)} == {"b", "c", "d"}
    # And who may only read them changes none
    with door.as_(await door.made("read:add", "operate:send_email", name="reads")) as address:
        async with GatewayClient(address) as reader:
            with pytest.raises(InvalidRequest, match="the token reads may not do this: it needs the right operate:add"):
                await reader.purge(LetterFilter(ids=("b",)))
    # And who may read nothing asks for nothing
    with door.as_(await door.made("operate:add@acme", name="runs")) as address:
        async with GatewayClient(address) as other:
            with pytest.raises(InvalidRequest, match="needs the right read, and has operate:add@acme"):
                await other.dead_letter("a")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            assert (await operator.dead_letter("d")).id == "d"


async def test_an_owner_stops_what_it_starts_and_nothing_else(door: Door) -> None:
    # Given schedules of an owner, and of others
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            for name, function, tenant in (("b", "add", "other"), ("c", "add", ""), ("d", "send_email", "acme")):
                await operator.put_schedule(Schedule(name, function, every=3600.0, tenant=tenant))
    with door.as_(await door.made(*OWNER)) as address:
        async with GatewayClient(address) as owner:
            await owner.put_schedule(Schedule("a", "add", every=3600.0, tenant="acme", payload=b"{}"))
            # When it lists them, Then it sees its own, however few are asked for
            assert [each.schedule.name for each in await owner.schedules()] == ["a"]
            assert [each.schedule.name for each in await owner.schedules(limit=1)] == ["a"]
            assert [each.schedule.payload for each in await owner.schedules("a")] == [b"{}"]
            # And it pauses, resumes, runs and removes it
            assert (await owner.change_schedule("a", "pause")).paused
            assert not (await owner.change_schedule("a", "resume")).paused
            assert len((await owner.change_schedule("a", "run-now")).last) == 1
            await owner.change_schedule("a", "remove")
            assert await owner.schedules() == []
            # And the others are as unknown as what is not there
            for other in ("b", "c", "d", "z"):
                calls = [owner.schedules(other)]
                calls += [owner.change_schedule(other, what) for what in ("pause", "resume", "run-now", "remove")]  # type: ignore[misc]
                for call in calls:
                    with pytest.raises(InvalidRequest) as refused:
                        await call
                    assert str(refused.value).startswith(f"no schedule is named '{other}': `tailrace schedule list`")
            with pytest.raises(
                Conflict, match="the name 'd' is taken by somebody else's schedule: choose another"
            ) as taken:
                await owner.put_schedule(Schedule("d", "add", every=1.0, tenant="acme"), replace_it=True)
            assert "send_email" not in str(taken.value)
    assert {row.schedule.name for row in await door.stores.schedules.list(10)} == {"b", "c", "d"}


async def test_who_may_only_read_a_schedule_does_not_change_it_and_who_may_only_operate_does_not_read_it(
    door: Door,
) -> None:
    # Given a schedule
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            await operator.put_schedule(Schedule("a", "add", every=3600.0, payload=b'{"a":1}'))
    # When somebody who may read it changes it, Then that is refused with the right that is missing
    with door.as_(await door.made("read:add", "operate:send_email", name="reads")) as address:
        async with GatewayClient(address) as reader:
            assert [each.schedule.payload for each in await reader.schedules()] == [b'{"a":1}']
            for what in ("pause", "run-now", "remove"):
                with pytest.raises(
                    InvalidRequest, match="the token reads may not do this: it needs the right operate:add"
                ):
                    await reader.change_schedule("a", what)
    # And who may only operate it changes it, and is not shown what it submits
    with door.as_(await door.made("operate:add", "read:send_email", name="operates")) as address:
        async with GatewayClient(address) as other:
            assert await other.schedules() == []
            with pytest.raises(InvalidRequest, match="it needs the right read:add"):
                await other.schedules("a")
            paused = await other.change_schedule("a", "pause")
            assert paused.paused and paused.schedule.payload == b""
    # And who has neither right is told which it needs at all
    with door.as_(await door.made("submit", name="submits")) as address:
        async with GatewayClient(address) as third:
            with pytest.raises(InvalidRequest, match="needs the right read, and has submit"):
                await third.schedules()
            with pytest.raises(InvalidRequest, match="needs the right operate, and has submit"):
                await third.change_schedule("a", "resume")
    [row] = await door.stores.schedules.list(10)
    assert row.paused and row.schedule.payload == b'{"a":1}'
