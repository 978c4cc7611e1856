"""Tokens: made once, held against their rights at each call, and over within a second of their end."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet
from scenes.token_door import DAY, Door

import tailrace
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.dead_letter import LetterFilter
from tailrace.model.errors import ConfigError, Conflict, InvalidRequest, NotConnected
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.model.rights import right_of
from tailrace.model.token import Token, hash_of
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.ports.tokens import TokenOrder


async def test_a_token_is_told_once_and_kept_as_a_hash(door: Door) -> None:
    secret = await door.made("submit:add", "read:add")
    assert secret.startswith("tailrace_") and len(secret) > 40
    [kept] = (await door.stores.control.snapshot()).tokens
    assert kept.hash == hash_of(secret) and secret not in repr(kept)
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            [view] = await operator.tokens()
            assert (view.name, view.rights) == ("ci", ["submit:add", "read:add"])
            assert view.created_by == "operator x" and view.until - view.created == pytest.approx(DAY)
            with pytest.raises(Conflict, match="a token 'ci' exists already"):
                await operator.create_token(TokenOrder("ci", ("read",), DAY))
            for wrong, says in (
                (TokenOrder("x", ("subnit",), DAY), "did you mean 'submit'"),
                (TokenOrder("x", ("read:a b",), DAY), "the function 'a b' is not a name"),
                (TokenOrder("x", (), DAY), "it has 0 rights"),
                (TokenOrder("x", ("read",), 0.0), "expected 1 s to 825 days"),
                (TokenOrder("x", ("read",), float("nan")), "expected 1 s to 825 days"),
                (TokenOrder("x\0", ("read",), DAY), "is not a name"),
            ):
                with pytest.raises(InvalidRequest, match=says):
                    await operator.create_token(wrong)


async def test_a_program_submits_and_reads_what_it_may(door: Door) -> None:
    secret = await door.made("submit:add", "read:add")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            handle = await client.submit("add", a=1)
            assert (await client.status(handle.id)).function == "add"
            with pytest.raises(
                InvalidRequest,
                match="ci may not do this: it needs the right submit:send_email, and has submit:add, read:add",
            ):
                await client.submit("send_email", to="ann")
            with pytest.raises(InvalidRequest, match="needs the right operate"):
                await client.cancel(handle.id)
        async with GatewayClient(address) as caller:
            assert [spec.name for spec in await caller.functions()] == ["add"]
            for call, right in (
                (caller.set_gate(Gate("add", "", "pause")), "operate"),
                (caller.tokens(), "administer"),
                (caller.create_token(TokenOrder("more", ("administer",), DAY)), "administer"),
                (caller.reload(), "administer"),
                (caller.dead_letters(), "read"),
                (caller.limits(), "read"),
            ):
                with pytest.raises(InvalidRequest, match=f"it needs the right {right}, and has|may not do this"):
                    await call
            with pytest.raises(
                InvalidRequest, match=r"the token ci may not call Operators/Call overview\.tell_failure"
            ):
                await caller.tell_failure("worker", "no", 1)


async def test_a_client_may_be_given_its_token_and_folder(door: Door, tmp_path: Path) -> None:
    secret = await door.made("submit:add")
    (tmp_path / "bare").mkdir()
    shutil.copy(door.fleet.folder / "ca.crt", tmp_path / "bare")
    address = door.server.token_address
    with door.fleet.as_(None):
        async with AsyncClient(address, tls=tmp_path / "bare", token=secret) as client:
            await client.submit("add", a=1)
            assert secret not in repr(client) and secret not in repr(vars(client))
        with tailrace.Client(address, tls=str(tmp_path / "bare"), token=secret) as blocking:
            await asyncio.to_thread(blocking.submit, "add", a=1)
        with tailrace.Client(door.server.address, tls=door.fleet.issue("client")) as certified:
            await asyncio.to_thread(certified.submit, "send_email", to="ann")
        with pytest.raises(ConfigError, match="a token is shown over TLS only"):
            tailrace.Client(address, token=secret)
        with pytest.raises(ConfigError, match="token holds 7001 characters: at most 7000 fit into a call"):
            tailrace.Client(address, tls=tmp_path / "bare", token="x" * 7001)
        with pytest.raises(ConfigError, match="token holds no token"):
            tailrace.Client(address, tls=tmp_path / "bare", token="a b")


async def test_what_a_token_may_not_read_is_not_known_to_it(door: Door) -> None:
    secret = await door.made("read:add")
    with door.fleet.as_(door.fleet.issue("client")):
        async with AsyncClient(door.server.address) as client:
            mine, other = await client.submit("add", a=1), await client.submit("send_email", to="ann")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            assert (await client.status(mine.id)).function == "add"
            with pytest.raises(InvalidRequest, match="is known"):
                await client.status(other.id)
            with pytest.raises(InvalidRequest, match="needs the right read:send_email"):
                await client.result(other.id, timeout=1)


async def test_a_token_of_a_tenant_submits_and_reads_for_no_other(door: Door) -> None:
    secret = await door.made("submit:add@acme", "read:add@acme", "operate:add@acme")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            await client.submit("add", a=1, tenant="acme")
            for other in ({}, {"tenant": "other"}, {"tenant": "acme2"}):
                with pytest.raises(InvalidRequest, match="needs the right submit:add"):
                    await client.submit("add", a=1, **other)
            calls = [tailrace.Call("add", a=1, tenant=tenant) for tenant in ("acme", "other")]
            with pytest.raises(InvalidRequest, match="needs the right submit:add@other"):
                await client.submit_many(calls)
        async with GatewayClient(address) as caller:
            for gate in (
                Gate("add", "", "pause", "ann", tenant="acme"),  # it stands on the tenant: for whoever is above
                Gate("add", "", "pause"),
                Gate("", "", "pause", tenant="acme"),
                Gate("", "", "pause", source="x"),
            ):
                with pytest.raises(InvalidRequest, match="needs the right operate"):
                    await caller.set_gate(gate)
            with pytest.raises(InvalidRequest, match="needs the right operate:add"):
                await caller.set_quota(Quota("add", concurrency=1))
            assert (await caller.dead_letters(LetterFilter(function="add", tenant="acme"))).letters == []
            with pytest.raises(InvalidRequest, match="needs the right read:add"):
                await caller.dead_letters(LetterFilter(function="add"))


async def test_who_shows_no_token_or_a_wrong_one_is_told_what_to_do(door: Door) -> None:
    for secret, says in (
        ("", "neither a certificate nor a token.*TAILRACE_TOKEN_FILE"),
        ("tailrace_wrong", "the token is not known here"),
        ("x" * 5000, "the token is not known here"),
    ):
        with door.as_(secret) as address:
            async with AsyncClient(address) as client:
                with pytest.raises(InvalidRequest, match=says):
                    await client.submit("add", a=1)
    with door.as_("two words"), pytest.raises(ConfigError, match="TAILRACE_TOKEN holds no token") as refused:
        async with AsyncClient(door.server.token_address) as client:
            await client.submit("add", a=1)
    assert "two words" not in str(refused.value)


async def test_at_the_address_of_certificates_a_token_is_not_enough(door: Door) -> None:
    secret = await door.made("submit")
    with door.as_(secret):
        async with GatewayClient(door.server.address) as caller:
            with pytest.raises(NotConnected, match="token_listen"):
                await caller.functions()


async def lasting(address: str, id: str) -> tuple[str, float]:
    """Waits for a result that does not come. Returns the error that ended the wait, and its seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with GatewayClient(address, timeout=30) as caller:
        from tailrace.wire.v1 import gateway_pb2 as pb

        with pytest.raises(InvalidRequest) as ended:
            await caller.call("Result", pb.ResultRequest(id=id, wait=30))
    return str(ended.value), loop.time() - began


async def test_revocation_ends_open_calls_within_a_second(door: Door) -> None:
    # Given somebody who watches, and somebody who waits for a result
    secret = await door.made("submit", "read")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            id = (await client.submit("add", a=1)).id
        waiting = asyncio.create_task(lasting(address, id))
        await asyncio.sleep(0.5)
        assert not waiting.done()
    # When the token is revoked
    await door.revoke()
    began = asyncio.get_running_loop().time()
    # Then that ends, and no new call is taken
    said, _ = await waiting
    assert asyncio.get_running_loop().time() - began < 1
    assert said == "the token ci was revoked"
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            with pytest.raises(InvalidRequest, match="the token is not known here"):
                await client.submit("add", a=1)


async def test_every_gateway_of_the_store_hears_of_it(door: Door) -> None:
    # Given a second gateway of the same store, and somebody who waits there
    secret = await door.made("submit", "read")
    with door.fleet.as_(door.fleet.issue("gateway")):
        second = door.stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0")
        await second.start()
    try:
        with door.as_(secret):
            async with AsyncClient(second.token_address) as client:
                id = (await client.submit("add", a=1)).id
            waiting = asyncio.create_task(lasting(second.token_address, id))
            await asyncio.sleep(0.5)
        # When the first one is told to revoke it, then the second one's call ends
        began = asyncio.get_running_loop().time()
        await door.revoke()
        assert (await waiting)[0] == "the token ci was revoked"
        assert asyncio.get_running_loop().time() - began < 2  # the operator's connection too
    finally:
        await second.stop()


async def test_its_end_does_too(door: Door) -> None:
    secret = "tailrace_short"
    rights = (right_of("submit"), right_of("read"))
    await door.stores.control.put_token(Token("short", hash_of(secret), rights, SYSTEM_CLOCK.wall() + 2))
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            async with asyncio.timeout(10):
                while True:
                    try:
                        id = (await client.submit("add", a=1)).id
                        break
                    except InvalidRequest:  # the gateway has not heard of it yet
                        await asyncio.sleep(0.01)
        said, after = await lasting(address, id)
    assert said.startswith("the token short has expired") and after < 3


async def test_tokens_are_taken_over_tls_only(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAILRACE_TLS", raising=False)
    with pytest.raises(ConfigError, match="only beside a listener with certificates"):
        await stores.gateway(token_listen="127.0.0.1:0").start()


async def test_a_store_of_another_fleet_is_refused(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Fleet(tmp_path / "other", monkeypatch, "f2")
    with (
        other.as_(other.issue("gateway")),
        pytest.raises(ConfigError, match="the store is of fleet f1, and this is fleet f2"),
    ):
        await door.stores.gateway().start()
    renewed = Fleet(tmp_path / "renewed", monkeypatch, "f1")  # another authority of the same fleet
    with renewed.as_(renewed.issue("gateway")):
        again = door.stores.gateway()
        await again.start()
        await again.stop()


async def test_no_secret_is_in_any_line_of_the_log(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    secret = await door.made("submit:add")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            with pytest.raises(InvalidRequest):
                await client.submit("send_email", to="x")
    assert caplog.text and secret not in caplog.text


async def test_a_program_has_jobs_of_what_it_may_submit_and_sees_no_others(door: Door) -> None:
    # Given a program that may submit and read one function for one tenant, and an operator of another
    ours = await door.made("submit:add@acme", "read:add@acme", name="ours")
    whole = await door.made("submit", "read", "operate", name="whole")
    with door.as_(ours) as address:
        async with AsyncClient(address) as client:
            # When it makes a job of it, fills it and looks
            job = client.job("sums", "add", tenant="acme")
            assert await job.add_many([{"a": 1}, {"a": 2}]) == 2
            status = await job.seal()
            assert (status.pending, status.created_by) == (2, "client ours")
            assert [each.id for each in await client_trees(client)] == [job.id]
            # Then what is not its own is refused, and says what is missing
            for refused in (client.job("x", "send_email"), client.job("x", "add"), client.job("x", "add", tenant="b")):
                with pytest.raises(InvalidRequest, match="needs the right submit:"):
                    await refused.seal()
            with pytest.raises(InvalidRequest, match="needs the right submit:send_email"):
                await client.job("x", "add", tenant="acme", on_done="send_email").seal()
            one = tailrace.Call("add", a=1, tenant="acme", on_done="send_email")
            with pytest.raises(InvalidRequest, match="needs the right submit:send_email"):
                await client.submit("add", a=1, tenant="acme", on_done="send_email")
            with pytest.raises(InvalidRequest, match="needs the right submit:send_email"):
                await client.submit_many([one, one])
            with pytest.raises(InvalidRequest, match="needs the right operate"):
                await job.cancel()
    with door.as_(whole) as address:
        async with AsyncClient(address) as client:
            other = client.job("mails", "send_email")
            await other.add_many([{"to": "ann"}])
            assert len(await client_trees(client)) == 2
            assert await client.known_job(job.id).cancel() == "done"
    with door.as_(ours) as address:
        async with AsyncClient(address) as client:
            assert [each.id for each in await client_trees(client)] == [job.id]
            hidden = client.known_job(other.id)
            for call in (hidden.status(), hidden.add(x=1), anext(hidden.results()), hidden.retry(), hidden.delete()):
                with pytest.raises(InvalidRequest, match="needs the right"):
                    await call


async def client_trees(client: AsyncClient) -> list[Any]:
    """The jobs that a client's caller is shown."""
    async with GatewayClient(client.gateway) as operators:
        return await operators.jobs()
