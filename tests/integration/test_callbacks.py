"""Callbacks over HTTP: sent, signed and tried again by a gateway, however the receiver answers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.duties import Duties
from tailrace.gateway.callback_config import CallbackConfig
from tailrace.gateway.callbacks import Callbacks
from tailrace.gateway.rules import callback
from tailrace.model.dead_letter import EVERY
from tailrace.model.priority import DEFAULT_PRIORITY
from tailrace.model.workload import Kind
from tailrace.stores.jobs.rules.callback import CALLBACK
from tailrace.stores.queue.queue import NewItem

KEY = b"k" * 32
SECRET = "whsec_" + base64.b64encode(KEY).decode()
EVENT = {"id": "job-1:done", "job": "job-1", "state": "complete"}


class Receiver:
    """A server that answers as it is told to, and keeps the requests."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.heard = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        self.got.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        self.heard.set()
        status = self.answers.pop(0) if self.answers else 204
        return web.Response(status=status, headers={"location": "/elsewhere"} if status == 302 else {})

    async def next(self) -> tuple[dict[str, str], bytes]:
        async with asyncio.timeout(20):
            while not self.got:
                self.heard.clear()
                await self.heard.wait()
        return self.got.pop(0)


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[Receiver, int]]:
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/{any:.*}", receiver.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield receiver, runner.addresses[0][1]
    await runner.cleanup()


class Sender:
    """A gateway's callbacks over stores of their own."""

    def __init__(self, stores: EmbeddedStores) -> None:
        self.stores = stores
        self.duties = Duties("gateway")

    def start(self, *allow: str) -> None:
        config = CallbackConfig(secrets=(SECRET,), allow=allow, timeout=2)  # type: ignore[arg-type]
        Callbacks(config, self.stores.queue, self.stores.dead_letters, SYSTEM_CLOCK, self.duties).start()

    async def tell(self, url: str) -> str:
        payload = json.dumps({"url": url, "event": EVENT}).encode()
        kind = Kind(CALLBACK, int(DEFAULT_PRIORITY))
        return (await self.stores.queue.tell_again([NewItem(kind, payload)]))[0].id

    async def ended(self, id: str) -> str:
        async with asyncio.timeout(20):
            while True:
                [status] = await self.stores.queue.status([id])
                assert status is not None
                if status.ended_at:
                    return status.state.label
                await asyncio.sleep(0.02)


@pytest.fixture
async def sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sender]:
    monkeypatch.setattr(callback, "PAUSES", (0.02, 0.02, 0.02))
    async with EmbeddedStores(tmp_path) as stores:
        sender = Sender(stores)
        yield sender
        await sender.duties.end()


async def test_an_event_is_sent_signed_until_it_was_heard(sender: Sender, receiver: tuple[Receiver, int]) -> None:
    # Given somebody who hears it the third time
    server, port = receiver
    server.answers = [503, 302]
    sender.start("127.0.0.0/8")
    # When it is to be told
    id = await sender.tell(f"http://127.0.0.1:{port}/done")
    # Then each request has the same id and body, and a signature of its own time
    for _ in range(3):
        headers, body = await server.next()
        assert json.loads(body) == EVENT
        assert headers["webhook-id"] == "job-1:done"
        content = f"job-1:done.{headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
    assert await sender.ended(id) == "success"
    assert server.got == [], "a redirect is not followed"


async def test_what_nobody_hears_is_a_dead_letter(sender: Sender, receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    server.answers = [500] * 4
    sender.start("127.0.0.0/8")
    id = await sender.tell(f"http://127.0.0.1:{port}/done")
    assert await sender.ended(id) == "fatal_failure"
    server.answers = [410]
    gone = await sender.tell(f"http://127.0.0.1:{port}/gone")
    assert await sender.ended(gone) == "fatal_failure"
    letters = {each.id: each for each in await sender.stores.dead_letters.list(EVERY, 10, max_bytes=1000)}
    assert (letters[id].attempts, letters[gone].attempts) == (4, 1)
    assert "answered 500" in letters[id].reason
    assert b"/gone" in letters[gone].payload
    # And it says how each attempt went, in the words of any dead letter
    assert (letters[id].outcome, letters[gone].outcome) == ("retry", "fatal")
    assert [each.outcome for each in letters[id].tries] == ["retry"] * 4
    assert [each.outcome for each in letters[gone].tries] == ["fatal"]
    assert "answered 500" in letters[id].tries[0].reason


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0x7f.1"])
async def test_an_address_that_is_not_public_is_not_called_whatever_it_is_called(
    sender: Sender, receiver: tuple[Receiver, int], host: str
) -> None:
    server, port = receiver
    sender.start("10.0.0.0/8")  # so that http is taken
    assert await sender.ended(await sender.tell(f"http://{host}:{port}/")) == "fatal_failure"
    assert server.got == []
    # And its dead letter says why
    (letter,) = await sender.stores.dead_letters.list(EVERY, 10, max_bytes=1000)
    assert any(
        why in letter.reason for why in ("no public address: name its network", "neither a name nor a full address")
    )


async def test_one_that_hangs_holds_up_no_other(sender: Sender, receiver: tuple[Receiver, int]) -> None:
    server, port = receiver
    quiet: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda reader, writer: quiet.append(writer), "127.0.0.1", 0)
    sender.start("127.0.0.0/8")
    try:
        await sender.tell(f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/")
        await sender.tell("no address")
        id = await sender.tell(f"http://127.0.0.1:{port}/done")
        await server.next()
        assert await sender.ended(id) == "success"
    finally:
        silent.close()
        for each in quiet:
            each.close()
