"""An authority that is taken out of ca.crt: connections by its certificates end, and no more are taken."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from scenes.fleet import Fleet
from unit.wire.test_tls import ATTACH, SUBMIT, issued_elsewhere, register

from tailrace.foundation.certificates import certificates_in
from tailrace.wire.channel import dial, serve


class Change:
    """A fleet that changes its authority: a server that trusts the former one too, and callers of both."""

    def __init__(self, former: Fleet, present: Fleet) -> None:
        self.former, self.present = former, present
        self.served = present.issue("scheduler")
        self.trust(former.folder, present.folder)
        self.address = ""

    def trust(self, *folders: Path) -> None:
        """Has the server trust these authorities from now on."""
        text = b"".join((folder / "ca.crt").read_bytes() for folder in folders)
        (self.served / "ca.new").write_bytes(text)
        (self.served / "ca.new").replace(self.served / "ca.crt")

    async def known(self, *folders: Path) -> None:
        """Trusts these authorities, and waits until the server knows."""
        certificates = certificates_in(self.served)
        before = certificates.now().number
        self.trust(*folders)
        async with asyncio.timeout(10):
            while certificates.now().number == before:
                await asyncio.sleep(0.05)

    def caller(self, fleet: Fleet, name: str) -> Path:
        """A worker of one of the authorities, which trusts the server's."""
        folder = fleet.issue("worker", name)
        both = {(each / "ca.crt").read_bytes() for each in (folder, self.present.folder)}
        (folder / "ca.crt").write_bytes(b"".join(both))
        return folder


@pytest.fixture
async def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Change]:
    former, present = (Fleet(tmp_path / name, monkeypatch, "f1") for name in ("former", "present"))
    made = Change(former, present)
    with present.as_(made.served):
        server, made.address = await serve("tls:127.0.0.1:0", [register])
    yield made
    await server.stop(None)


async def ended(read: Callable[[], Any]) -> tuple[grpc.StatusCode, str]:
    """Status and details with which a call ends."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await read()
    return error.value.code(), str(error.value.details())


async def test_what_is_open_ends_within_a_second_and_no_call_is_taken_over_the_open_connection(change: Change) -> None:
    # Given a caller of each authority, both heard
    old, new = change.caller(change.former, "old"), change.caller(change.present, "new")
    with change.former.as_(old):
        first = dial(change.address)
    with change.present.as_(new):
        second = dial(change.address)
    async with first, second:
        going, staying = first.stream_stream(ATTACH)(), second.stream_stream(ATTACH)()
        assert await going.read() == b"worker old of fleet f1"
        assert await staying.read() == b"worker new of fleet f1"
        assert await first.unary_unary(SUBMIT)(b"", timeout=5) == b"worker old of fleet f1"
        # When the former authority is trusted no longer
        loop = asyncio.get_running_loop()
        change.trust(change.present.folder)
        began = loop.time()
        code, said = await ended(going.read)
        # Then what its certificates have open ends, and over the connection that is there nothing more is taken
        assert loop.time() - began < 1.5
        assert code is grpc.StatusCode.UNAUTHENTICATED
        assert said.startswith("the certificate of worker old of fleet f1 comes from no authority in ca.crt any longer")
        code, said = await ended(lambda: first.unary_unary(SUBMIT)(b"", timeout=5))
        assert code is grpc.StatusCode.UNAUTHENTICATED and "comes from no authority in ca.crt any longer" in said
        # And the other one goes on
        assert await second.unary_unary(SUBMIT)(b"", timeout=5) == b"worker new of fleet f1"
        assert not staying.done()


async def test_an_authority_that_comes_ends_nothing(change: Change, tmp_path: Path) -> None:
    # Given a caller by way of an intermediate authority, whose root is trusted
    mine = tmp_path / "issued"
    issued_elsewhere(mine, "tailrace://f1/worker/w1", ())
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(mine / "ca.crt", root)
    text = (mine / "ca.crt").read_bytes() + (change.present.folder / "ca.crt").read_bytes()
    (mine / "ca.crt").write_bytes(text)
    await change.known(change.present.folder, root)
    with change.present.as_(mine):
        channel = dial(change.address)
    async with channel:
        call = channel.stream_stream(ATTACH)()
        assert await call.read() == b"worker w1 of fleet f1"
        # When an authority is trusted besides, Then it goes on
        await change.known(change.present.folder, root, change.former.folder)
        assert await channel.unary_unary(SUBMIT)(b"", timeout=5) == b"worker w1 of fleet f1"
        assert not call.done()
        # When its root is trusted no longer, Then it ends, though what is between is as it was
        change.trust(change.present.folder, change.former.folder)
        code, said = await ended(call.read)
    assert code is grpc.StatusCode.UNAUTHENTICATED and "comes from no authority in ca.crt any longer" in said
