"""Tailers of other processes are seen and reached by any gateway: listed, paused, moved, audited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.assembly import reloading
from tailrace.assembly.separate import SeparateDelay, SeparateGateway, SeparateStore, SeparateTailers
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.errors import InvalidRequest, Unavailable
from tailrace.model.gate import Gate
from tailrace.model.member import FleetMember, MemberOrder, asked_of, tailers_of
from tailrace.model.seek import Seek
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient

ANY, NOWHERE = "127.0.0.1:0", "127.0.0.1:1"
LOG = "name: {name}\nsource: {{kind: log, stream: {name}}}\nfunction: count\n"


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Any]:
    """Stores, a gateway and a delay service; and `tailers`, a function that starts a process's tailers."""
    directory = ConfigDirectory(None)
    async with AsyncExitStack() as stack:

        async def running(part: Any) -> Any:
            await part.start()
            stack.push_async_callback(part.stop)
            return part

        store = await running(SeparateStore(tmp_path / "data", directory, ANY))
        gateway = await running(SeparateGateway(store.address, directory, ANY))
        delay = await running(SeparateDelay(store.address, directory, ANY))
        log = await stack.enter_async_context(RemoteLog(store.address))
        operator = await stack.enter_async_context(GatewayClient(gateway.address))

        async def tailers(*names: str) -> SeparateTailers:
            for name in names:
                (tmp_path / f"{name}.yaml").write_text(LOG.format(name=name))
            return await tailers_of(*(tmp_path / f"{name}.yaml" for name in names))

        async def tailers_of(*files: Path, watch: bool = False) -> SeparateTailers:
            made = SeparateTailers(
                files, directory, scheduler=NOWHERE, delay=delay.address, store=store.address, watch=watch
            )
            started: SeparateTailers = await running(made)
            return started

        yield SimpleNamespace(
            log=log, operator=operator, tailers=tailers, tailers_of=tailers_of, gateway=gateway, store=store
        )


async def until(right: Callable[[], Awaitable[bool]], within: float = 15) -> None:
    async with asyncio.timeout(within):
        while not await right():
            await asyncio.sleep(0.05)


async def test_tailers_of_several_processes_are_listed_paused_moved_and_audited(fleet: Any) -> None:
    # Given two processes with tailers, which are not the gateway's
    await fleet.log.append("orders", 0, [Record(b"1"), Record(b"2")])
    first = await fleet.tailers("orders")
    await fleet.tailers("events", "inbox")

    # Then all of them are listed, with where they run
    async def listed() -> list[str]:
        return [each.name for each in (await fleet.operator.overview()).tailers]

    async def all_there() -> bool:
        return await listed() == ["events", "inbox", "orders"]

    await until(all_there)
    assert all(":" in each.process for each in (await fleet.operator.overview()).tailers)
    # When one is paused, then it is, where it runs
    note = await fleet.operator.pause_tailer(Gate("", "", "pause", "ann", "a check", source="orders"))
    assert "it runs at" in note and "hears of it" in note

    async def paused() -> bool:
        found = {each.name: each.state for each in (await fleet.operator.overview()).tailers}
        return found["orders"] == "paused"

    await until(paused)
    # And its checkpoint is moved there, and says what that passes
    [move] = await fleet.operator.seek_tailer(Seek("orders", edge="end", why="a bad export", who="ann"))
    assert (move.before, move.after, move.dropped) == (0, 2, 2)
    # And it is audited there
    [audit] = await fleet.operator.audit("orders")
    assert audit.counts.get("dropped") == 2
    # And mistakes are told as by a tailer here
    with pytest.raises(InvalidRequest, match="no tailer 'ordres' runs anywhere"):
        await fleet.operator.seek_tailer(Seek("ordres", edge="end", why="a typo"))
    with pytest.raises(InvalidRequest, match="has read no partition"):
        await fleet.operator.audit("orders", "nowhere")
    assert "no tailer 'ordres' runs now; did you mean 'orders'" in await fleet.operator.pause_tailer(
        Gate("", "", "pause", source="ordres")
    )
    # When a process ends, then its tailers are gone from the list at once
    await first.stop()
    assert await listed() == ["events", "inbox"]


async def test_a_folder_of_tailers_is_watched_by_a_process_of_them(
    fleet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "LOOK_EVERY", 0.05)
    # Given a process that watches a folder, which is empty
    folder = tmp_path / "tailers"
    folder.mkdir()
    process = await fleet.tailers_of(folder, watch=True)

    async def told(*names: str) -> None:
        async def listed() -> bool:
            return [each.name for each in (await fleet.operator.overview()).tailers] == [*names]

        await until(listed)

    await told()
    # When files come, are added and go, then so do their tailers
    (folder / "orders.yaml").write_text(LOG.format(name="orders"))
    await told("orders")
    (folder / "events.yaml").write_text(LOG.format(name="events"))
    await told("events", "orders")
    (folder / "orders.yaml").unlink()
    await told("events")
    # And a broken one is told, while the others go on
    (folder / "wrong.yaml").write_text("name: wrong\nsorce: {}\n")

    async def alerted() -> bool:
        return any("wrong.yaml:2:" in each.what for each in process._troubles())

    await until(alerted)
    await told("events")


async def test_a_member_that_dies_is_not_waited_for(fleet: Any) -> None:
    # Given a member that told of a tailer, and then neither tells nor answers any more
    control = fleet.store._stores.control
    dead = FleetMember("dead", "host-2:7", '[{"name": "orders", "kind": "log", "state": "running"}]')
    await control.tell_member(dead, 1.5)
    # When something is asked of it, then whoever asks hears as soon as its time is over
    with pytest.raises(Unavailable, match="host-2:7 ended before it answered: ask again"):
        await fleet.operator.seek_tailer(Seek("orders", edge="end", why="a check"))
    assert (await fleet.operator.overview()).tailers == []


def test_what_another_version_says_is_left_out() -> None:
    assert tailers_of(FleetMember("a", "here", '[{"name": "orders"}]')) == []
    assert tailers_of(FleetMember("a", "here", "nonsense")) == []
    told = '[{"name": "orders", "kind": "log", "state": "running", "later": 1}]'
    assert [(each.name, each.process) for each in tailers_of(FleetMember("a", "here", told))] == [("orders", "here")]
    assert asked_of(MemberOrder("1", "a", '{"type": "dance"}')) is None
