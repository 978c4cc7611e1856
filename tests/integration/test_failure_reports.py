"""Failures in stores, tailers and a delay service that run apart is seen in `alerts`, through the store server."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly import reports
from tailrace.assembly.separate import SeparateDelay, SeparateGateway, SeparateStore, SeparateTailers
from tailrace.assembly.settings import ConfigDirectory
from tailrace.foundation.lifecycle import Part, Reopening
from tailrace.model.alert import Alert
from tailrace.model.errors import InvalidRequest, NotConnected
from tailrace.model.overview import TailerOverview
from tailrace.model.reopening import Trouble
from tailrace.tailers.supervisor import Tailers
from tailrace.wire.gateway import GatewayClient

from ..scenes.lone_node import until

ANY = "127.0.0.1:0"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "TELL_EVERY", 0.02)


@asynccontextmanager
async def apart(folder: Path) -> AsyncIterator[tuple[GatewayClient, dict[str, Any]]]:
    """An operator at a gateway, and the parts that run apart from it, by name."""
    config = ConfigDirectory(None)
    file = folder / "log.yaml"
    file.write_text("name: orders\nsource: {kind: log, stream: orders}\nfunction: add\n")
    async with AsyncExitStack() as ends:

        async def running(part: Any) -> Any:
            ends.push_async_callback(part.stop)
            await part.start()
            return part

        store = await running(SeparateStore(folder / "data", config, ANY))
        gateway = await running(SeparateGateway(store.address, config, ANY))
        delay = await running(SeparateDelay(store.address, config, ANY))
        tailers = await running(
            SeparateTailers([file], config, scheduler="127.0.0.1:1", delay=delay.address, store=store.address)
        )
        operator = await ends.enter_async_context(GatewayClient(gateway.address))
        yield operator, {"stores": store, "delay service": delay, "tailers": tailers}


def kept(part: Any) -> list[Part]:
    return list(getattr(part, "_parts", None) or []) if not isinstance(part, SeparateTailers) else kept(part._parts)


async def of(operator: GatewayClient, subject: str) -> Alert | None:
    alerts = (await operator.overview()).alerts
    return next((each for each in alerts if each.code == "part" and each.subject.startswith(subject)), None)


@pytest.mark.parametrize("name", ["stores", "delay service", "tailers"])
async def test_a_part_that_was_closed_is_seen(tmp_path: Path, name: str) -> None:
    async with apart(tmp_path) as (operator, parts):
        # Given parts that are well
        assert await of(operator, name) is None
        # When something in one fails beyond its own handling
        [part] = [
            each.part for each in kept(parts[name]) if isinstance(each, Reopening) and each.part.duties.part == name
        ]
        part.duties.failed("a turn", ValueError("planted"))
        # Then it is opened again, and operators see which one, where, and why
        told = await until(lambda: of(operator, name))
        assert told.subject.endswith(f":{os.getpid()}") and "a turn: planted" in told.what
        assert "the part is opened again by itself" in told.todo

        async def open_again() -> bool:
            found = await of(operator, name)
            return found is not None and "it is open again" in found.what

        await until(open_again)


async def test_a_duty_that_fails_is_seen_until_it_is_well(tmp_path: Path) -> None:
    async with apart(tmp_path) as (operator, parts):
        [part] = [
            each.part
            for each in kept(parts["tailers"])
            if isinstance(each, Reopening) and each.part.duties.part == "tailers"
        ]
        part.duties.ails("a look", "the disk is full", 0.0)
        told = await until(lambda: of(operator, "tailers"))
        assert "a look fails, and tries again: the disk is full" in told.what
        part.duties.well("a look")

        async def gone() -> bool:
            return await of(operator, "tailers") is None

        await until(gone)


async def test_a_tailer_that_gets_nowhere_is_seen_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Tailers.overviews

    def stuck(self: Tailers) -> list[TailerOverview]:
        ill = {"state": "running", "healthy": False, "why": "no worker runs add", "cause": "no_worker"}
        return [replace(each, **ill) for each in real(self)]

    monkeypatch.setattr(Tailers, "overviews", stuck)
    async with apart(tmp_path) as (operator, _):
        told = await until(lambda: of(operator, "tailer orders"))
        assert (told.what, told.todo) == ("no worker runs add", "start a worker with the function's module")


class Server:
    """A store server that refuses, one that is away, or one that answers nothing."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.told: list[list[Trouble]] = []
        self.heard = asyncio.Event()

    async def tell(self, teller: str, troubles: list[Trouble]) -> None:
        self.told.append(troubles)
        self.heard.set()
        if self.error is not None:
            raise self.error

    async def all(self) -> list[Trouble]:
        if self.error is None:
            await asyncio.Event().wait()
        assert self.error is not None
        raise self.error


@pytest.mark.parametrize("error", [NotConnected("away"), InvalidRequest("there is no troubles.all here"), None])
async def test_a_server_that_cannot_say_it_holds_up_no_overview(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr(reports, "ANSWER_WITHIN", 0.02)
    assert await reports.told(Server(error)) == []


async def test_who_cannot_be_told_is_told_later_and_one_that_refuses_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ailing = [Trouble("tailers", 1.0, "it failed", 1)]
    server = Server(NotConnected("away"))
    part = reports.TellingTroubles(server, lambda: ailing)
    await part.start()

    async def heard(times: int) -> None:
        async with asyncio.timeout(10):
            while len(server.told) < times:
                server.heard.clear()
                await server.heard.wait()

    await heard(2)
    server.error = InvalidRequest("there is no troubles.tell here")
    with caplog.at_level(logging.WARNING):
        await heard(len(server.told) + 3)
    told = "failures of this process are not reported to the store server: there is no troubles.tell here"
    assert caplog.text.count(told) == 1
    # And what is over is taken back once, and then nothing is said
    server.error = None
    ailing.clear()
    await heard(len(server.told) + 1)
    count = len(server.told)
    assert server.told[-1] == []
    await asyncio.sleep(5 * reports.TELL_EVERY)
    await part.stop()
    assert len(server.told) <= count + 1
