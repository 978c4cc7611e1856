"""TLS between parts: callers that get in, by which certificate, and the words for everybody else."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import random
import shutil
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from scenes.fleet import Fleet

from tailrace.foundation.certificates import Certificates
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import ConfigError, InvalidRequest, NotConnected
from tailrace.wire.callers import CALLER
from tailrace.wire.channel import dial, dial_blocking, error_of, serve
from tailrace.wire.health import Health

SUBMIT, ATTACH, GATES = (f"/tailrace.v1.{name}" for name in ("Gateway/Submit", "Scheduler/AttachWorker", "Nothing/New"))


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path / "fleet", monkeypatch)


async def who(request: bytes, context: Any) -> bytes:
    return str(CALLER.get()).encode()


async def as_long_as(requests: Any, context: Any) -> None:
    """Streams the name of its caller once, and then nothing for ever."""
    await context.write(str(CALLER.get()).encode())
    await asyncio.Event().wait()


def register(server: grpc.aio.Server) -> None:
    """Methods under the names of real ones, of raw bytes."""
    for service, methods in (
        ("Gateway", {"Submit": grpc.unary_unary_rpc_method_handler(who)}),
        ("Scheduler", {"AttachWorker": grpc.stream_stream_rpc_method_handler(as_long_as)}),
        ("Nothing", {"New": grpc.unary_unary_rpc_method_handler(who)}),
    ):
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"tailrace.v1.{service}", methods),))


Serve = Callable[[Path], Awaitable[str]]


@pytest.fixture
async def serving(fleet: Fleet) -> AsyncIterator[Serve]:
    servers: list[grpc.aio.Server] = []

    async def start(folder: Path) -> str:
        with fleet.as_(folder):
            server, address = await serve("tls:127.0.0.1:0", [register])
        servers.append(server)
        return address

    yield start
    for server in servers:
        await server.stop(None)


async def asked(address: str, path: str = SUBMIT) -> str:
    async with dial(address) as channel:
        try:
            answer: bytes = await channel.unary_unary(path)(b"", timeout=5)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, address) from None
        return answer.decode()


async def test_a_caller_is_known_by_its_certificate(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    assert address.startswith("tls:127.0.0.1:")
    with fleet.as_(fleet.issue("client", "ann")):
        assert await asked(address) == "client ann of fleet f1"


async def test_a_blocking_caller_is_too(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    with fleet.as_(fleet.issue("client", "ann")), dial_blocking(address) as channel:
        assert await asyncio.to_thread(channel.unary_unary(SUBMIT), b"", timeout=5) == b"client ann of fleet f1"


async def test_a_role_calls_what_it_may_and_is_told_who_may_call_the_rest(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    with (
        fleet.as_(fleet.issue("scheduler", "s1")),
        pytest.raises(
            InvalidRequest,
            match="scheduler s1 of fleet f1 may not call Gateway/Submit: only client, node, operator and worker may",
        ),
    ):
        await asked(address)
    with (
        fleet.as_(fleet.issue("operator")),
        pytest.raises(InvalidRequest, match="may not call Nothing/New: nobody may"),
    ):
        await asked(address, GATES)


async def test_who_has_no_certificate_is_told_that_it_needs_one(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    with fleet.as_(None), pytest.raises(ConfigError, match=r"over TLS only, and this process has no certificates"):
        await asked(address)
    with pytest.raises(NotConnected, match=r"this process has no certificates.*TAILRACE_TLS"):
        said = "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:10.0.0.1:1: Socket closed"
        raise error_of(AioRpcError(StatusCode.UNAVAILABLE, Metadata(), Metadata(), said), "10.0.0.1:1")


async def test_nothing_is_said_in_the_clear_by_who_has_a_token(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_TOKEN", "x")
    with fleet.as_(None), pytest.raises(ConfigError, match=r"10\.0\.0\.1:1 is called over TLS only"):
        dial("10.0.0.1:1")
    with fleet.as_(None):  # of this machine the secret is shown, as always
        await dial("127.0.0.1:1").close()


async def test_who_has_an_authority_alone_is_hung_up_on(fleet: Fleet, serving: Serve, tmp_path: Path) -> None:
    address = await serving(fleet.issue("gateway"))
    (tmp_path / "bare").mkdir()
    shutil.copy(fleet.folder / "ca.crt", tmp_path / "bare")
    with fleet.as_(tmp_path / "bare"), pytest.raises(NotConnected, match="hung up on a caller without a certificate"):
        await asked(address)


async def test_another_fleet_is_refused_on_both_sides(
    fleet: Fleet, serving: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Fleet(tmp_path / "other", monkeypatch, "f2")
    address = await serving(fleet.issue("gateway"))
    foreign = other.issue("client", "eve")
    with fleet.as_(foreign), pytest.raises(NotConnected, match=f"its certificate is of another fleet than {foreign}"):
        await asked(address)
    trusting = tmp_path / "trusting"  # eve trusts the fleet; that does not make her one of it
    shutil.copytree(foreign, trusting)
    shutil.copy(fleet.folder / "ca.crt", trusting / "ca.crt")
    with (
        fleet.as_(trusting),
        pytest.raises(ConfigError, match=r"not issued by an authority in .*: are both of one fleet"),
    ):
        await asked(address)


async def test_a_caller_of_another_fleet_with_the_same_authority_is_refused(fleet: Fleet, serving: Serve) -> None:
    """Two fleets under one issuer of cert-manager are such a case."""
    address = await serving(fleet.issue("gateway"))
    fleet.authority.fleet = "f2"
    with (
        fleet.as_(fleet.issue("client")),
        pytest.raises(InvalidRequest, match="client x of fleet f2 is of another fleet"),
    ):
        await asked(address)


async def test_an_expired_certificate_is_neither_shown_nor_taken(fleet: Fleet, serving: Serve) -> None:
    old = fleet.issue("client", ago=40)
    with pytest.raises(ConfigError, match=r"tls.crt: the certificate of client x of fleet f1 expired at .* auth renew"):
        Certificates(old).now()
    with pytest.raises(ConfigError, match=r"is valid from .* set the clock right"):
        Certificates(fleet.issue("client", ago=-2)).now()


async def test_a_caller_whose_certificate_ends_meanwhile_is_told_so(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    with fleet.as_(fleet.issue("client", ago=1 - 2 / 86_400, days=1)):
        assert await asked(address) == "client x of fleet f1"
        async with asyncio.timeout(20):
            said = "the certificate of client x of fleet f1 expired at"  # here, or at the server if on the way there
            with pytest.raises((NotConnected, InvalidRequest), match=said):
                while True:
                    await asked(address)
                    await asyncio.sleep(0.1)


async def test_health_may_be_asked_by_whoever_gets_a_connection(fleet: Fleet, serving: Serve) -> None:
    health = Health("test")
    with fleet.as_(fleet.issue("scheduler")):
        server, address = await serve("tls:127.0.0.1:0", [health.register])
    try:
        await health.set(True)
        with fleet.as_(fleet.issue("worker")):
            assert await asked(address, "/grpc.health.v1.Health/Check") == "\x08\x01"
    finally:
        await server.stop(None)


async def test_a_server_is_known_by_its_hosts(fleet: Fleet) -> None:
    with fleet.as_(fleet.issue("gateway")):
        server, address = await serve("tls:127.0.0.2:0", [register])
    try:
        said = r"not for this name; issue it one with `--host 127.0.0.2`"
        with fleet.as_(fleet.issue("client")), pytest.raises(NotConnected, match=said):
            await asked(address)
    finally:
        await server.stop(None)


async def test_whoever_only_calls_cannot_serve(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("worker"))
    with fleet.as_(fleet.issue("client")), pytest.raises(NotConnected, match="for callers only"):
        await asked(address)


async def test_a_listener_without_tls_hears_nothing(fleet: Fleet) -> None:
    server, address = await serve("127.0.0.1:0", [register])
    try:
        with fleet.as_(fleet.issue("client")), pytest.raises(NotConnected, match="does not speak TLS"):
            await asked(f"tls:{address}")
    finally:
        await server.stop(None)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_older_than_1_2_is_refused(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    mine = fleet.issue("client")

    def speak(version: ssl.TLSVersion) -> str | None:
        context = ssl.create_default_context(cafile=str(mine / "ca.crt"))
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(mine / "tls.crt", mine / "tls.key")
        context.minimum_version = context.maximum_version = version
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        with socket.create_connection(place) as plain, context.wrap_socket(plain, server_hostname=place[0]) as tls:
            return tls.version()

    assert await asyncio.to_thread(speak, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await asyncio.to_thread(speak, ssl.TLSVersion.TLSv1_1)


async def test_a_call_that_lasts_ends_when_its_certificate_does(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("scheduler"))
    with fleet.as_(fleet.issue("worker", "w1", ago=1 - 3 / 86_400, days=1)):  # three seconds are left of it
        async with dial(address) as channel:
            call = channel.stream_stream(ATTACH)()
            assert await call.read() == b"worker w1 of fleet f1"
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call.read()
    assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "the certificate of worker w1 of fleet f1 expired" in str(ended.value.details())


async def test_a_call_that_lasts_ends_when_its_certificate_is_revoked_and_it_makes_no_other(
    fleet: Fleet, serving: Serve
) -> None:
    # Given two callers that are heard
    address = await serving(fleet.issue("scheduler"))
    folder, other = fleet.issue("worker", "w1"), fleet.issue("worker", "w2")
    with fleet.as_(folder):
        async with dial(address) as channel:
            call = channel.stream_stream(ATTACH)()
            assert await call.read() == b"worker w1 of fleet f1"
            # When the certificate of one is revoked
            fleet.authority.revoke("worker-w1", SYSTEM_CLOCK.wall())
            began = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call.read()
            # Then what it has open ends within a second, and nothing more is taken from it
            assert time.monotonic() - began < 1.5
        assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "the certificate of worker w1 of fleet f1 was revoked" in str(ended.value.details())
        with pytest.raises(InvalidRequest, match="was revoked; make another one with `tailrace auth issue`"):
            await asked(address)
    # And the other one goes on, and who was revoked with another certificate
    anew = fleet.authority.issue("worker", "w1", (), SYSTEM_CLOCK.wall(), at="worker-w1-anew")
    for each in (other, anew):
        with fleet.as_(each):
            async with dial(address) as channel:
                assert (await channel.stream_stream(ATTACH)().read()).startswith(b"worker w")


async def test_changed_files_are_in_force_for_the_next_connection_and_broken_ones_are_not(
    fleet: Fleet, serving: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served, mine = fleet.issue("gateway"), fleet.issue("client", "ann")
    address = await serving(served)
    with fleet.as_(mine):
        async with dial(address) as channel:
            call = channel.unary_unary(SUBMIT)
            assert await call(b"", timeout=5) == b"client ann of fleet f1"
            # When the client's becomes another one
            renewed = fleet.issue("client", "bob")
            for name in ("tls.crt", "tls.key"):
                shutil.copy(renewed / name, mine / name)
            # Then the next calls are made with it, over the same channel
            async with asyncio.timeout(10):
                while await call(b"", timeout=5) != b"client bob of fleet f1":
                    await asyncio.sleep(0.1)
            # When the server's and the client's are broken
            (served / "tls.crt").write_text("nonsense")
            (mine / "tls.key").write_bytes((served / "tls.key").read_bytes())
            # Then all goes on with the former ones, and it is said
            async with asyncio.timeout(10):
                while "not the key of" not in caplog.text:
                    assert await call(b"", timeout=5) == b"client bob of fleet f1"
                    await asyncio.sleep(0.1)
        async with asyncio.timeout(10):
            while "no certificate in PEM" not in caplog.text:  # the server looks when somebody connects
                assert await asked(address) == "client bob of fleet f1"
                await asyncio.sleep(0.1)
    assert caplog.text.count("The former certificates stay in force") == 2


async def test_a_servers_changed_certificate_is_shown_to_who_connects_next(fleet: Fleet, serving: Serve) -> None:
    served = fleet.issue("gateway", hosts=("10.0.0.1",))
    address = await serving(served)
    before = await asyncio.to_thread(served_certificate, address, fleet.folder / "ca.crt")
    fleet.issue("gateway", hosts=("10.0.0.2",))
    async with asyncio.timeout(10):
        while await asyncio.to_thread(served_certificate, address, fleet.folder / "ca.crt") == before:
            await asyncio.sleep(0.1)


def served_certificate(address: str, authority: Path) -> str:
    host, port = address.removeprefix("tls:").split(":")
    return ssl.get_server_certificate((host, int(port)), ca_certs=str(authority))


async def test_whatever_strangers_send_the_fleet_goes_on(fleet: Fleet, serving: Serve) -> None:
    address = await serving(fleet.issue("gateway"))
    chance, port = random.Random(7), int(address.rpartition(":")[2])
    hello = bytes.fromhex("16030100a5010000a10303")  # how a handshake begins
    for number in range(100):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((hello if number % 2 else b"") + chance.randbytes(chance.randrange(2000)))
        if number % 3:
            writer.write_eof()
        writer.close()
    with fleet.as_(fleet.issue("client", "ann")):
        assert await asked(address) == "client ann of fleet f1"


def issued_elsewhere(folder: Path, uri: str, hosts: tuple[str, ...]) -> None:
    """Makes a certificate as an issuer with a root and an intermediate authority does (step-ca, cert-manager), of
    RSA."""
    now = datetime.datetime.now(datetime.UTC)
    day, form = datetime.timedelta(days=1), serialization.Encoding.PEM

    def make(name: str, issuer: tuple[Any, Any] | None, alternatives: list[x509.GeneralName]) -> tuple[Any, Any]:
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(
            issuer[0].subject if issuer else subject, subject, key.public_key(), 7, now - day, now + day
        ).add_extension(x509.BasicConstraints(ca=not alternatives, path_length=None), critical=True)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key

    root = make("root", None, [])
    middle = make("middle", root, [])
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri)]
    names += [x509.IPAddress(ipaddress.ip_address(host)) for host in hosts]
    leaf, key = make("leaf", middle, names)
    folder.mkdir()
    private = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / "tls.key").write_bytes(key.private_bytes(form, *private))
    (folder / "tls.crt").write_bytes(leaf.public_bytes(form) + middle[0].public_bytes(form))
    (folder / "ca.crt").write_bytes(root[0].public_bytes(form))


async def test_certificates_of_another_issuer_with_an_intermediate_authority_fit(
    fleet: Fleet, serving: Serve, tmp_path: Path
) -> None:
    mine = tmp_path / "issued"
    issued_elsewhere(mine, "tailrace://shop/node/n1", ("127.0.0.1",))
    address = await serving(mine)
    with fleet.as_(mine):
        assert await asked(address) == "node n1 of fleet shop"
    # When the chain is not whole, that is said at once
    whole = (mine / "tls.crt").read_bytes()
    torn = tmp_path / "torn"
    shutil.copytree(mine, torn)
    (torn / "tls.crt").write_bytes(whole[: whole.index(b"-----END") + 26])
    with fleet.as_(torn), pytest.raises(ConfigError, match="not issued by an authority"):
        await asked(address)
