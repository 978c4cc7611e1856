"""Rights: nobody gives what it has not, lifts what stands on it, or says that it is somebody else; and what was revoked
stays so."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from scenes import commands
from scenes.fleet import Fleet
from scenes.token_door import DAY, Door

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import InvalidRequest, TailraceError
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.model.rights import right_of
from tailrace.model.schedule import Schedule
from tailrace.model.token import Token, hash_of
from tailrace.sdk.async_client import AsyncClient
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.ports.tokens import TokenOrder

ISSUER = "https://id.example.org"
pytestmark = pytest.mark.trust(point=13)


async def test_a_token_gives_no_right_that_it_has_not(door: Door) -> None:
    # Given a token that may administer, and one that may besides submit some
    alone = await door.made("administer", name="alone")
    more = await door.made("administer", "submit:mail.*@acme", name="more")
    # When the first one makes tokens
    with door.as_(alone) as address:
        async with GatewayClient(address) as caller:
            # Then none gets a right that it lacks itself
            for wanted in ("submit", "operate", "run:add", "read:add@acme"):
                with pytest.raises(InvalidRequest, match=f"the right {wanted}"):
                    await caller.create_token(TokenOrder("x", ("administer", wanted), DAY))
            assert (await caller.create_token(TokenOrder("heir", ("administer",), DAY))).secret
    # And the other one gives what it has, or less, and not more
    with door.as_(more) as address:
        async with GatewayClient(address) as caller:
            for name, wanted in (
                ("a", "submit:mail.*@acme"),
                ("b", "submit:mail.x@acme"),
                ("c", "submit:mail.y*@acme"),
            ):
                await caller.create_token(TokenOrder(name, (wanted,), DAY))
            for wanted in ("submit:mail*@acme", "submit:mail.x", "submit:mail.*@acme*", "read:mail.x@acme"):
                with pytest.raises(InvalidRequest, match="may not give the right"):
                    await caller.create_token(TokenOrder("x", (wanted,), DAY))


async def test_a_tenant_lifts_nothing_that_stands_on_it(door: Door) -> None:
    # Given limits and a pause of an operator on a tenant, and the tenant's own operator
    secret = await door.made("operate@acme", "operate:add@acme", name="acme")
    limited = Quota(tenant="acme", concurrency=2)
    paused = Gate("add", "", "pause", "ann", "they flood it", tenant="acme")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            await operator.set_quota(limited)
            await operator.set_gate(paused)
    with door.as_(secret) as address:
        async with GatewayClient(address) as caller:
            # When it lifts its limits, reserves slots, or resumes what was paused
            for quota in (
                Quota(tenant="acme", concurrency=1000),
                Quota(tenant="acme"),
                Quota(tenant="acme", reserve=60_000),
                Quota("add", tenant="acme", reserve=60_000),
                Quota("add", tenant="acme", highest="interactive"),
            ):
                with pytest.raises(InvalidRequest, match="needs the right operate"):
                    await caller.set_quota(quota)
            for gate in (
                Gate("add", "", "resume", tenant="acme"),
                Gate("", "", "resume", tenant="acme"),
                Gate("add", "", "pause", tenant="acme", until=time.time() + 1),
            ):
                with pytest.raises(InvalidRequest, match="needs the right operate"):
                    await caller.set_gate(gate)
    # Then all stands as it was
    snapshot = await door.stores.control.snapshot()
    assert [(each.key, each.why) for each in snapshot.gates] == [(paused.key, "they flood it")]
    assert snapshot.quotas == [limited]


async def test_a_gate_is_lifted_by_a_right_as_wide_as_that_which_set_it(door: Door) -> None:
    # Given the owner of a function, who paused a collection of it, and an operator who paused all of it
    secret = await door.made("operate:add", name="owner")
    own, others = Gate("add", "bulk", "pause", "bea"), Gate("add", "", "pause", "ann", "the database is full")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            await operator.set_gate(others)
    with door.as_(secret) as address:
        async with GatewayClient(address) as caller:
            await caller.set_gate(own)
            # When the owner resumes both, or replaces the operator's by one that ends
            for gate in (Gate("add", "", "resume"), Gate("add", "", "pause", until=time.time() + 1)):
                with pytest.raises(InvalidRequest, match=r"was set with the right operate, .* ask ann"):
                    await caller.set_gate(gate)
            await caller.set_gate(Gate("add", "bulk", "resume"))
            # And a reserve is taken from all others, so it is no function's to give
            with pytest.raises(InvalidRequest, match="needs the right operate, and has"):
                await caller.set_quota(Quota("add", reserve=60_000))
            await caller.set_quota(Quota("add", concurrency=5))
    # Then the operator's stands, and the operator resumes it
    assert [each.key for each in (await door.stores.control.snapshot()).gates] == [others.key]
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            await operator.set_gate(Gate("add", "", "resume"))
    assert (await door.stores.control.snapshot()).gates == []


async def test_a_pause_of_a_schedule_is_lifted_by_a_right_as_wide_as_that_which_set_it(door: Door) -> None:
    # Given a tenant's own operator, with two schedules of which an operator of everything pauses one
    secret = await door.made("operate:add@acme", "submit:add@acme", "read:add@acme", name="acme")
    nightly, hourly = (Schedule(name, "add", b'{"a":1}', every=3600.0, tenant="acme") for name in ("nightly", "hourly"))
    with door.as_(secret) as address:
        async with GatewayClient(address) as caller:
            for each in (nightly, hourly):
                await caller.put_schedule(each)
            await caller.change_schedule("nightly", "pause")
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            await operator.change_schedule("nightly", "pause")
    with door.as_(secret) as address:
        async with GatewayClient(address) as caller:
            # When the tenant resumes it, takes it away, or pauses it once more to resume that
            await caller.change_schedule("nightly", "pause")
            for what in ("resume", "remove"):
                with pytest.raises(InvalidRequest, match=r"nightly was set with the right operate, .* one as wide"):
                    await caller.change_schedule("nightly", what)
            # Then it stays paused, also where it is replaced; and what the tenant paused itself it resumes
            assert (await caller.put_schedule(replace(nightly, every=60.0), replace_it=True)).state == "paused"
            await caller.change_schedule("hourly", "pause")
            assert (await caller.change_schedule("hourly", "resume")).state == "active"
    with door.fleet.as_(door.fleet.issue("operator")):
        async with GatewayClient(door.server.address) as operator:
            assert (await operator.change_schedule("nightly", "resume")).state == "active"


async def test_a_pause_of_a_job_is_lifted_by_a_right_as_wide_as_that_which_set_it(door: Door) -> None:
    # Given two jobs of a tenant, of which an operator of everything pauses one
    rights = [f"{action}:add@acme" for action in ("operate", "submit", "read")]
    secret = await door.made(*rights, name="acme")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            theirs, own = [client.job("sums", "add", tenant="acme") for _ in range(2)]
            for job in (theirs, own):
                await job.add(a=1)
                await job.pause()
            with door.fleet.as_(door.fleet.issue("operator")):
                async with AsyncClient(door.server.address) as operator:
                    await operator.known_job(theirs.id).pause()
            # When the tenant resumes both, the operator's after another pause of its own
            await theirs.pause()
            with pytest.raises(InvalidRequest, match=r"was set with the right operate, .* one as wide"):
                await theirs.resume()
            await own.resume()
            # Then its own goes on, and the other one once somebody resumes it who may do as much
            assert [(await job.status()).state for job in (theirs, own)] == ["paused", "running"]
    with door.fleet.as_(door.fleet.issue("operator")):
        async with AsyncClient(door.server.address) as operator:
            await operator.known_job(theirs.id).resume()
            assert (await operator.known_job(theirs.id).status()).state == "running"


async def test_who_made_something_is_what_the_gateway_saw(door: Door) -> None:
    # Given a program that says that it is somebody else
    secret = await door.made("submit:add", "read:add", "operate:add", name="ci")
    with door.as_(secret) as address:
        async with AsyncClient(address) as client:
            # When it submits, alone and in bulk, and makes a job
            one = await client.submit("add", a=1, created_by="boss@hq as operator root")
            many = await client.submit_many([tailrace.Call("add", a=each, created_by="boss@hq") for each in range(3)])
            job = await client.job("sums", "add").seal()
            told = [(await client.status(each.id)).created_by for each in (one, *many)]
        # Then its token's name is what stands there
        assert {*told, job.created_by} == {"client ci"}
        # And an act is signed with its own word only where that passes for nobody else
        async with GatewayClient(address) as caller:
            await caller.set_gate(Gate("add", "", "pause", "root as operator boss"))
            await caller.set_gate(Gate("add", "bulk", "pause", "bea@laptop"))
    whole, part = (await door.stores.control.snapshot()).gates
    assert (whole.who, part.who) == ("as client ci", "bea@laptop as client ci")


async def test_the_platforms_own_functions_are_nobodys(door: Door, stores: Any) -> None:
    # Given a worker that registers the name of the function that sends callbacks
    for name in ("tailrace.callback", "tailrace.x"):
        with door.fleet.as_(door.fleet.issue("worker")):
            async with GatewayClient(door.server.address) as worker:
                with pytest.raises(InvalidRequest, match="as only the platform's own do"):
                    await worker.register_functions("w", [FunctionSpec(name)])
    # And a registry of a version that took it, which the gateway has read
    await stores.control.register([FunctionSpec("tailrace.callback")])
    with door.fleet.as_(door.fleet.issue("worker")):
        async with GatewayClient(door.server.address) as worker:
            await worker.register_functions("w", [FunctionSpec("mine")])
    forged = {"url": "https://victim.example.org/", "event": {"id": "forged"}}
    with door.fleet.as_(door.fleet.issue("client")):
        async with AsyncClient(door.server.address) as client:
            # When somebody submits to it, names it as on_done, or makes a job of it
            for call in (
                client.submit("tailrace.callback", **forged),
                client.submit("add", a=1, on_done="tailrace.callback"),
                client.job("x", "tailrace.callback").seal(),
            ):
                with pytest.raises(TailraceError, match=r"as only the platform's own do|is registered"):
                    await call
    # Then nothing waits for it
    assert (await stores.queue.counts())["new"] == 0


# Tokens of an issuer.


def signed(key: Any, **head: Any) -> str:
    said = {"iss": ISSUER, "aud": "tailrace", "sub": "ann", "exp": time.time() + 60, "groups": ["shop"]}
    return jwt.encode({"alg": "ES256"} | head, said, key, algorithms=["ES256"])


def public(key: Any, **more: Any) -> dict[str, Any]:
    return {name: value for name, value in key.as_dict(private=False).items() if name != "kid"} | more


class Issuer:
    """A gateway that takes the tokens of an issuer, whose keys lie in a file."""

    def __init__(self, keys: Path, server: Any, bare: Path) -> None:
        self._keys, self._server, self._bare = keys, server, bare

    def has(self, *keys: dict[str, Any]) -> None:
        self._keys.write_text(json.dumps({"keys": keys}))

    async def takes(self, token: str) -> str:
        """Shows a token; returns the refusal, empty: it was taken."""
        async with AsyncClient(self._server.token_address, tls=self._bare, token=token, timeout=5) as client:
            try:
                await client.submit("add", a=1)
            except TailraceError as error:
                return str(error)
        return ""

    async def until(self, token: str, refused: bool) -> None:
        async with asyncio.timeout(20):
            while bool(await self.takes(token)) is not refused:
                await asyncio.sleep(0.05)


@pytest.fixture
async def issuer(stores: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Issuer]:
    monkeypatch.setattr("tailrace.gateway.oidc.SOONEST", 0.05)
    monkeypatch.setattr("tailrace.gateway.oidc.AGAIN", 0.05)
    fleet, keys, bare = Fleet(tmp_path / "fleet", monkeypatch), tmp_path / "keys.json", tmp_path / "bare"
    bare.mkdir()
    shutil.copy(fleet.folder / "ca.crt", bare)
    config = {"issuer": ISSUER, "audience": "tailrace", "keys": str(keys), "rights": {"shop": ["submit:add"]}}
    server = stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0", oidc=config)
    with fleet.as_(fleet.issue("gateway")):
        await server.start()
    yield Issuer(keys, server, bare)
    await server.stop()


@pytest.mark.parametrize("left", ["none", "one that cannot be read", "another one and one that cannot be read"])
async def test_a_key_that_its_issuer_took_back_opens_nothing(issuer: Issuer, left: str) -> None:
    # Given an issuer with one key, whose tokens are taken
    stolen, other = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    issuer.has(public(stolen, kid="a"))
    await issuer.until(signed(stolen, kid="a"), False)
    # When it takes that key back
    broken = {"kty": "EC", "crv": "P-256", "x": "!", "y": "?", "kid": "c"}
    issuer.has(*([] if left == "none" else [broken] if left.startswith("one") else [broken, public(other, kid="b")]))
    # Then no token of it is taken any more, and those of a key that is left are
    await issuer.until(signed(stolen, kid="a"), True)
    if left.startswith("another"):
        await issuer.until(signed(other, kid="b"), False)


async def test_two_keys_without_a_name_both_count(issuer: Issuer) -> None:
    # Given an issuer whose keys have no `kid`
    first, second, stranger = (ECKey.generate_key("P-256") for _ in range(3))
    issuer.has(public(first), public(second))
    await issuer.until(signed(first), False)
    # Then tokens of each are taken, with a name of a key or without
    for key in (first, second):
        assert (await issuer.takes(signed(key)), await issuer.takes(signed(key, kid="any"))) == ("", "")
    assert "signature is not right" in await issuer.takes(signed(stranger))


# A copy that is put back.


def token(name: str) -> Token:
    return Token(name, hash_of(f"tailrace_{name}"), (right_of("submit"),), time.time() + DAY)


async def restored(backup: Path, data: Path, *more: str) -> tuple[str, list[str]]:
    """Puts a backup back. Returns what was said, and the tokens that hold there."""
    done = await asyncio.to_thread(commands.tailrace, "store", "restore", str(backup), "--data", str(data), *more)
    assert done.returncode == 0, done.stderr
    async with EmbeddedStores(data, run_dir=Path(os.environ["TAILRACE_RUN_DIR"])) as there:
        return done.stdout + done.stderr, [each.name for each in (await there.control.snapshot()).tokens]


async def test_a_revoked_token_does_not_come_back_with_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a node with two tokens and a backup of it, after which one is revoked
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("TAILRACE_RUN_DIR", str(tmp_path / "run"))
    async with EmbeddedStores(tmp_path / "data", run_dir=tmp_path / "run") as stores:
        for name in ("leaked", "kept"):
            await stores.control.put_token(token(name))
        backup = tmp_path / "backup"
        done = await asyncio.to_thread(
            commands.tailrace, "store", "backup", str(backup), "--data", str(tmp_path / "data")
        )
        assert done.returncode == 0, done.stderr
        await stores.control.remove_token("leaked")
    # When the backup is put back, then that one stays revoked, and is named
    said, hold = await restored(backup, tmp_path / "again")
    assert hold == ["kept"]
    assert "leaked" in said
    # And so it does with files that are copied by hand
    shutil.copytree(backup, tmp_path / "by-hand")
    async with EmbeddedStores(tmp_path / "by-hand", run_dir=tmp_path / "run") as there:
        assert [each.name for each in (await there.control.snapshot()).tokens] == ["kept"]
    # And where nobody knows what was revoked, none comes back, unless it is wanted
    monkeypatch.setenv("TAILRACE_RUN_DIR", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    said, hold = await restored(backup, tmp_path / "new")
    assert hold == []
    assert "kept, leaked" in said
    said, hold = await restored(backup, tmp_path / "wanted", "--keep-tokens")
    assert hold == ["kept", "leaked"]
    assert "kept, leaked" in said
