"""Callbacks (webhooks) over HTTP: THE rule of their targets, signatures, answers and retries.

Signatures are those of Standard Webhooks (standardwebhooks.com): `v1,` and the base64 of an HMAC-SHA256 over id, time
and body. An address that is not public is refused unless it is allowed: the author of a job could else reach addresses
that only the gateway can reach (server-side request forgery).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from ...model.claim import State
from ...model.errors import InvalidRequest
from ...model.name import NAME_LENGTH

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Most characters of a URL.
LONGEST = 2000
#: Seconds from one attempt to the next; after the last of them the callback is given up (three days).
PAUSES = (5.0, 30.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 72_000.0)
#: The prefix of a secret, and the least and most of its bytes.
SECRET_PREFIX, FEWEST, MOST = "whsec_", 24, 64


def is_url(text: str) -> bool:
    """Whether a text is a URL rather than a function's name, which may have colons and slashes too."""
    return text.lower().startswith(("https:", "http:"))


def is_function(on_done: str) -> bool:
    """Whether `on_done` names a function."""
    return bool(on_done) and not is_url(on_done)


def host_of(url: str) -> str:
    """The host and port of a URL that was checked."""
    return urlsplit(url).netloc.lower()


def shown_url(text: str) -> str:
    """A URL as logs, letters and messages show it: its host alone. The path is a password at many receivers, and so is
    what stands behind it."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "(an address that cannot be read)"
    rest = "/…" if parts.path.strip("/") or parts.query or parts.fragment else parts.path
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{rest}"[:NAME_LENGTH]


def check_url(text: str, allowed: Sequence[Network]) -> None:
    """Raises InvalidRequest for a URL that a callback may not go to, as far as that is known without DNS."""
    shown = shown_url(text)
    if len(text) > LONGEST or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidRequest(f"on_done is {shown!r}: expected an https URL of at most {LONGEST} ASCII characters")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequest(f"on_done is {shown!r}: {error}; expected an https URL") from None
    if parts.scheme not in ("https", "http") or not host:
        raise InvalidRequest(f"on_done is {shown!r}: expected https://HOST/PATH, or the name of a function")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("on_done has a user or a password in it: requests are signed instead; leave it out")
    if parts.scheme == "http" and not allowed:
        raise InvalidRequest(
            f"on_done is {shown!r}: http is taken only where `callbacks.allow` names networks; use https"
        )
    literal = address_of(host)
    if (literal is None and _ends_in_a_number(host)) or ("%" in host and ":" not in host):
        raise InvalidRequest(
            f"on_done is {shown!r}: its host is neither a name nor a full address: write an address as its four "
            "numbers, or give a name"
        )
    if literal is not None and not may_go_to(literal, allowed):
        raise InvalidRequest(refused(host, literal))


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address of a host that is written as one; of `localhost` (RFC 6761) that of this machine; None: a name."""
    if f".{host.rstrip('.').lower()}".endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _ends_in_a_number(host: str) -> bool:
    """Whether some resolvers take a host for an address, such as `127.1`, `2130706433` or `0x7f.1` (the rule of the URL
    Standard of WHATWG)."""
    last = host.removesuffix(".").rpartition(".")[2].lower()
    return last.isdigit() or (last.startswith("0x") and set(last[2:]) <= set("0123456789abcdef"))


def may_go_to(address: ipaddress.IPv4Address | ipaddress.IPv6Address, allowed: Sequence[Network]) -> bool:
    """Whether a callback may go to an address: it is public, or in an allowed network. An IPv6 address that leads to
    one of IPv4 (mapped, 6to4) is judged as that."""
    judged = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    if any(judged.version == network.version and judged in network for network in allowed):
        return True
    return bool(judged.is_global and not judged.is_multicast and not judged.is_reserved)


def refused(host: str, address: object) -> str:
    """The refusal of an address that is not public."""
    return (
        f"{host} is {address}, which is no public address: name its network in `callbacks.allow` of gateway.yaml, if "
        "callbacks may go there"
    )


def key_of(secret: str) -> bytes:
    """The key of a secret, as Standard Webhooks write it. Raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not FEWEST <= len(key) <= MOST:
        raise ValueError(
            f"expected {SECRET_PREFIX} and the base64 of {FEWEST} to {MOST} random bytes, such as of `openssl rand 32`"
        )
    return key


def signed(keys: Sequence[bytes], id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of a request: a signature by each key, so that keys can be changed. `at`: seconds since 1970."""
    content = b".".join((id.encode(), str(at).encode(), body))
    signatures = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in keys]
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{each}" for each in signatures),
    }


def outcome_of(status: int) -> State:
    """The state of a callback after an answer: 2xx is success, 410 is final failure, all else is tried again."""
    if 200 <= status < 300:
        return State.SUCCESS
    return State.FATAL_FAILURE if status == 410 else State.RETRIABLE_FAILURE


def pause_after(attempt: int) -> float | None:
    """Seconds until the next attempt, after the attempt of this number (from 1 on); None: there is none."""
    return PAUSES[attempt - 1] if attempt <= len(PAUSES) else None
