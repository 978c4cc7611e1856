"""Addresses: how host:port is read, and which addresses stay on this machine."""

from __future__ import annotations

import pytest

from tailrace.model.address import Address, listening_address, parse_address, read_address, wants_tls
from tailrace.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        ("127.0.0.1:1", Address("127.0.0.1", 1)),
        ("[::1]:65535", Address("[::1]", 65_535)),
        ("a.example.org:80", Address("a.example.org", 80)),
    ],
)
def test_host_and_port_are_read(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", ":", "nowhere", ":80", "host:", "host:x", "host:-1", "host:65536", "host:0", "host:²", "h:" + "9" * 5000],
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert read_address(text) is None


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("localhost", True),
        ("[::1]", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("[::]", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_what_stays_on_this_machine_is_known(host: str, loopback: bool) -> None:
    assert Address(host, 1).loopback is loopback


def test_an_address_to_listen_on_may_leave_the_port_open() -> None:
    assert listening_address("[::1]:0") == Address("[::1]", 0)
    assert listening_address("[::1]:0").bare_host == "::1"


@pytest.mark.parametrize(
    ("text", "says"),
    [("nowhere", "'nowhere' is not an address to listen on"), ("0.0.0.0:80", "without certificates only loopback")],
)
def test_what_nobody_can_listen_on_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        listening_address(text)


def test_a_text_that_must_be_an_address_is_one_or_says_what_was_expected() -> None:
    assert parse_address("[::1]:8786") == Address("[::1]", 8786)
    assert parse_address("localhost:0", lowest_port=0).port == 0
    for text in ("localhost", ":1", "localhost:0", "localhost:http"):
        with pytest.raises(ConfigError, match="expected host:port"):
            parse_address(text)


def test_with_certificates_one_may_listen_anywhere() -> None:
    assert listening_address("10.0.0.1:8786", secured=True) == Address("10.0.0.1", 8786)
    assert listening_address("tls:127.0.0.1:0", secured=True) == Address("127.0.0.1", 0)
    with pytest.raises(ConfigError, match="TAILRACE_TLS"):
        listening_address("tls:127.0.0.1:8786")


@pytest.mark.parametrize(
    ("address", "wants"),
    [
        ("127.0.0.1:1", False),
        ("[::1]:1", False),
        ("localhost:1", False),
        ("tls:localhost:1", True),
        ("10.0.0.1:1", True),
        ("node1.example.org:1", True),
        ("nowhere", False),
    ],
)
def test_tls_is_spoken_beyond_this_machine_and_where_an_address_says_so(address: str, wants: bool) -> None:
    assert wants_tls(address) is wants
