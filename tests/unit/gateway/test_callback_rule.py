"""Callbacks over HTTP: where they may go, how they are signed, and when they are sent again."""

from __future__ import annotations

import base64
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.callback_config import CallbackConfig
from tailrace.gateway.rules.callback import (
    PAUSES,
    address_of,
    check_url,
    is_url,
    key_of,
    may_go_to,
    outcome_of,
    pause_after,
    signed,
)
from tailrace.model.claim import State
from tailrace.model.errors import InvalidRequest

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PRIVATE = (
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "64:ff9b::7f00:1",
    "::7f00:1",
    "ff02::1",
)


@pytest.mark.parametrize("text", PRIVATE)
def test_an_address_that_is_not_public_is_refused_unless_its_network_is_named(text: str) -> None:
    address = address_of(text)
    assert address is not None
    assert not may_go_to(address, [])
    host = f"[{text}]" if ":" in text else text
    with pytest.raises(InvalidRequest, match="no public address"):
        check_url(f"https://{host}/done", [])
    plain = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    assert may_go_to(address, [ipaddress.ip_network(plain)])


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.", "app.localhost"])
def test_the_name_of_this_machine_is_no_public_address(host: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is 127\.0\.0\.1, which is no public address"):
        check_url(f"https://{host}:8443/done", [])
    check_url(f"https://{host}:8443/done", [ipaddress.ip_network("127.0.0.0/8")])
    check_url("https://notlocalhost/done", [])


@pytest.mark.parametrize(
    "host",
    ["2130706433", "127.1", "127.0.1", "0177.0.0.1", "0x7f.1", "0x7F000001", "0x", "10.1.2.3.", "a.b.09", "127%2e1"],
)
def test_a_host_that_some_resolvers_take_for_an_address_is_refused(host: str) -> None:
    for allowed in ([], [ipaddress.ip_network("127.0.0.0/8")]):
        with pytest.raises(InvalidRequest, match="four numbers"):
            check_url(f"https://{host}:8443/done", allowed)


def test_a_functions_name_is_no_address() -> None:
    assert not any(is_url(name) for name in ("hear", "shop:hear", "shop/hear", "shop://hear", "https"))
    assert is_url("HTTPS://example.com/")


def test_public_addresses_and_names_are_taken() -> None:
    for url in ("https://example.com/done?x=1", "https://93.184.216.34:8443/", "https://[2606:2800:220:1::1]/x"):
        check_url(url, [])
    for url in ("https://1.example.com./", "https://0x7f.example/", "https://a1/", "https://[2002:5db8:d822::1]/"):
        check_url(url, [])
    check_url("http://10.0.0.7:8080/done", [ipaddress.ip_network("10.0.0.0/8")])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.com/", "use https"),
        ("ftp://example.com/", "expected https"),
        ("https:///path", "expected https"),
        ("https://user:secret@example.com/", "user or a password"),
        ("https://example.com:99999/", "expected an https URL"),
        ("https://exam ple.com/", "ASCII characters"),
        ("https://example.com/\r\nx: y", "ASCII characters"),
        ("https://exämple.com/", "ASCII characters"),
        ("https://example.com/\ud800", "ASCII characters"),
        ("https://example.com/" + "x" * 2000, "ASCII characters"),
        ("https://[::1", "expected an https URL"),
    ],
)
def test_what_is_no_address_is_refused_and_says_what_to_do(url: str, why: str) -> None:
    assert is_url(url) == url.startswith("http")
    with pytest.raises(InvalidRequest, match=why) as caught:
        check_url(url, [])
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        check_url(text, [])
    except InvalidRequest:
        return
    assert text.startswith("https://")


def test_signatures_are_those_of_standard_webhooks() -> None:
    # The example of its specification.
    key = base64.b64decode("plJ3nmyCDGBKInavdOK15jsl")
    body = b'{"event_type":"ping","data":{"success":true}}'
    headers = signed([key], "msg_loFOjxBNrRLzqYUf", 1731705121, body)
    assert headers["webhook-signature"] == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
    both = signed([key, b"k" * 32], "msg_loFOjxBNrRLzqYUf", 1731705121, body)["webhook-signature"]
    assert both.startswith(headers["webhook-signature"] + " v1,")


def test_a_secret_is_base64_of_enough_bytes() -> None:
    assert key_of(SECRET) == bytes(range(32))
    for bad in ("", "whsec_", "whsec_!!", "whsec_" + base64.b64encode(b"short").decode()):
        with pytest.raises(ValueError, match="openssl rand 32"):
            key_of(bad)
    config = CallbackConfig(secrets=(SECRET,), allow=("10.0.0.0/8", "::1"))  # type: ignore[arg-type]
    assert SECRET not in repr(config)
    assert config.keys == [bytes(range(32))]


def test_an_answer_says_whether_it_is_sent_again_and_there_is_a_last_time() -> None:
    assert [outcome_of(status) for status in (200, 204, 299)] == [State.SUCCESS] * 3
    assert [outcome_of(status) for status in (301, 400, 404, 429, 500)] == [State.RETRIABLE_FAILURE] * 5
    assert outcome_of(410) is State.FATAL_FAILURE
    pauses = [pause_after(attempt) for attempt in range(1, len(PAUSES) + 2)]
    assert pauses[:-1] == sorted(PAUSES)
    assert pauses[-1] is None
