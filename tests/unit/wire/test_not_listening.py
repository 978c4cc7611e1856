"""The reason why nothing listens at an address: a name that is not known, an address of elsewhere, a taken port."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from scenes.fleet import Fleet

from tailrace.model.errors import AlreadyInUse, ConfigError
from tailrace.wire.channel import serve
from tailrace.wire.not_listening import not_listening

BY = "`listen` in gateway.yaml"


def test_a_name_that_is_not_known_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a resolver that does not know a name, as that of a pod that has just got its address
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    # When somebody is to listen there, then it is no taken port
    found = not_listening("shop-node-0.shop-node:8786", BY)
    assert isinstance(found, ConfigError)
    assert "the name shop-node-0.shop-node is not known here (Name or service not known)" in str(found)
    assert f"choose another by {BY}" in str(found)


@pytest.mark.parametrize("address", ["192.0.2.1:0", "tls:192.0.2.1:0"])
def test_an_address_of_another_machine_is_told_as_that(address: str) -> None:
    found = not_listening(address, BY)
    assert isinstance(found, ConfigError) and "Cannot assign requested address" in str(found)


async def test_a_server_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(tmp_path / "fleet", monkeypatch)
    with (
        fleet.as_(fleet.issue("gateway")),
        pytest.raises(ConfigError, match=r"192\.0\.2\.1:0: Cannot assign requested address"),
    ):
        await serve("192.0.2.1:0", [])


@pytest.mark.parametrize("before", ["", "tls:", "direct:"])
def test_a_taken_port_is_told_as_that(before: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = not_listening(f"{before}127.0.0.1:{other.getsockname()[1]}")
    assert isinstance(found, AlreadyInUse) and "the port is taken" in str(found)
