"""Signed tokens of an issuer: its keys come from a file or an address, and change while all runs."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from scenes.fleet import Fleet

from tailrace.gateway import oidc
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import ConfigError, InvalidRequest, Unavailable
from tailrace.sdk.async_client import AsyncClient

ISSUER = "https://id.example.org"


def signed(key: Any, algorithm: str = "ES256", **claims: Any) -> str:
    said = {"iss": ISSUER, "aud": "tailrace", "sub": "ann", "exp": time.time() + 60, "groups": ["shop"]} | claims
    return jwt.encode({"alg": algorithm, "kid": key.kid}, said, key, algorithms=[algorithm])


def told(*keys: Any) -> str:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]})


def made(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid})


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "SOONEST", 0.05)
    monkeypatch.setattr(oidc, "AGAIN", 0.05)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    (tmp_path / "bare").mkdir()
    found = Fleet(tmp_path / "fleet", monkeypatch)
    shutil.copy(found.folder / "ca.crt", tmp_path / "bare")
    return found


Start = Callable[[str], Any]


@pytest.fixture
async def start(stores: Any, fleet: Fleet) -> AsyncIterator[Start]:
    running: list[GatewayServer] = []

    async def gateway(keys: str) -> GatewayServer:
        config = {
            "issuer": ISSUER,
            "audience": "tailrace",
            "keys": keys,
            "rights": {"shop": ["submit:add", "read:add"]},
        }
        server = stores.gateway(listen="tls:127.0.0.1:0", token_listen="127.0.0.1:0", oidc=config)
        with fleet.as_(fleet.issue("gateway")):
            await server.start()
        running.append(server)
        return server

    yield gateway
    for server in running:
        await server.stop()


async def submitted(server: GatewayServer, token: str, tmp_path: Path, function: str = "add") -> str:
    async with AsyncClient(server.token_address, tls=tmp_path / "bare", token=token, timeout=5) as client:
        return (await client.submit(function, a=1)).id


async def until_taken(server: GatewayServer, token: str, tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await submitted(server, token, tmp_path)
                return
            except InvalidRequest:
                await asyncio.sleep(0.05)


async def test_whoever_the_issuer_vouches_for_may_what_its_groups_may(start: Start, tmp_path: Path) -> None:
    key = made("a")
    (tmp_path / "keys.json").write_text(told(key))
    server = await start(str(tmp_path / "keys.json"))
    assert await submitted(server, signed(key), tmp_path)
    with pytest.raises(InvalidRequest, match="the token ann may not do this: it needs the right submit:send_email"):
        await submitted(server, signed(key), tmp_path, "send_email")
    for wrong, says in (
        ({"iss": "https://evil"}, "not by https://id.example.org"),
        ({"aud": "other"}, "not for 'tailrace'"),
        ({"exp": time.time() - 1}, "has expired"),
        ({"groups": ["x"]}, "gives no rights here"),
    ):
        with pytest.raises(InvalidRequest, match=says):
            await submitted(server, signed(key, **wrong), tmp_path)


async def test_what_the_issuer_did_not_sign_is_refused(start: Start, tmp_path: Path) -> None:
    key = made("a")
    public = RSAKey.generate_key(2048, {"kid": "r"})
    (tmp_path / "keys.json").write_text(told(key, public))
    server = await start(str(tmp_path / "keys.json"))
    good = signed(key)
    head, body, sign = good.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    # A public key is no secret: who signs by it as by one is nobody
    named = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"r"}').rstrip(b"=").decode()
    mac = hmac.digest(public.as_pem(private=False), f"{named}.{body}".encode(), "sha256")
    confused = f"{named}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    for forged in (
        signed(made("a")),
        signed(made("unknown")),
        f"{head}.{body}.{'A' * len(sign)}",
        f"{head}.{body[:-4]}AAAA.{sign}",
        f"{none}.{body}.",
        confused,
        "a.b.c",
        "..",
        "tailrace_x",
        "x" * 6900,
        f"{'x' * 3000}.y.z",
    ):
        with pytest.raises(InvalidRequest):
            await submitted(server, forged, tmp_path)
    assert await submitted(server, good, tmp_path)


async def test_new_keys_are_taken_and_old_ones_are_not(start: Start, tmp_path: Path) -> None:
    first, second = made("a"), made("b")
    (tmp_path / "keys.json").write_text(told(first))
    server = await start(str(tmp_path / "keys.json"))
    assert await submitted(server, signed(first), tmp_path)
    # When the issuer changes its keys, for a moment to nonsense
    (tmp_path / "keys.json").write_text("nonsense")
    await asyncio.sleep(0.2)
    assert await submitted(server, signed(first), tmp_path)
    (tmp_path / "keys.json").write_text(told(second))
    await until_taken(server, signed(second), tmp_path)
    with pytest.raises(InvalidRequest, match="signed by a key that"):
        await submitted(server, signed(first), tmp_path)


@asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """An issuer's server; the address of its keys."""
    app = web.Application()
    app.router.add_get("/keys", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/keys"  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()


async def test_keys_that_come_in_pieces_are_read_whole(start: Start, tmp_path: Path) -> None:
    known = made("a")

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for letter in told(known):
            await response.write(letter.encode())
            await asyncio.sleep(0)
        return response

    async with serving(answer) as address:
        server = await start(address)
        await until_taken(server, signed(known), tmp_path)


async def test_keys_come_from_an_address_once_until_another_one_is_shown(start: Start, tmp_path: Path) -> None:
    first, second = made("a"), made("b")
    known, asked = [first], 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(text=told(*known)) if known else web.Response(status=503)

    async with serving(answer) as address:
        server = await start(address)
        for _ in range(5):
            await submitted(server, signed(first), tmp_path)
        assert asked == 1
        known.append(second)
        await until_taken(server, signed(second), tmp_path)
        assert 2 <= asked <= 4
    # When the issuer is away, the keys stay
    assert await submitted(server, signed(first), tmp_path)


async def test_without_keys_a_caller_is_asked_to_come_again(start: Start, tmp_path: Path) -> None:
    server = await start(str(tmp_path / "absent.json"))
    with pytest.raises(Unavailable, match="are not known yet"):
        await submitted(server, signed(made("a")), tmp_path)


def test_what_an_issuer_cannot_be_is_refused() -> None:
    good = {"issuer": ISSUER, "audience": "x", "keys": "https://x", "rights": {"a": ["read"]}}
    oidc.OidcConfig.model_validate(good)
    for wrong, says in (
        ({"keys": "http://id.example.org/keys"}, "expected https"),
        ({"rights": {"a": ["fly"]}}, "'fly' is not an action that a right can allow"),
        ({"rights": {}}, "at least 1"),
        ({"issuer": ""}, "at least 1"),
    ):
        with pytest.raises(ValueError, match=says):
            oidc.OidcConfig.model_validate(good | wrong)
    assert oidc.issuer_keys(b'{"keys": [{"kty": "oct", "k": "AAAA"}]}', "x") == ([], [])
    with pytest.raises(ConfigError, match="no keys of an issuer"):
        oidc.issuer_keys(b"[]", "x")
