"""The users that listen at a port of this machine, as its kernel says."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

#: Linux's lists of all sockets. Reading them takes milliseconds, some of them with interrupts off: the last resort.
TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING: Final = "0A"
#: The beginning of an IPv4 address that is written as one of IPv6.
_MAPPED: Final = bytes(10) + b"\xff\xff"

#: Constants of the question by netlink (sock_diag) about listening sockets alone: linux/inet_diag.h.
_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2
_LISTEN: Final = 1 << 10
_HEADER, _PORT_AT, _ADDRESS_AT, _USER_AT = 16, 4, 8, 64
#: Seconds, and bytes, of one answer.
_PATIENCE, _PIECE = 1.0, 1 << 16


class ListeningSocket(NamedTuple):
    """A socket that listens: the address it is bound to, four or sixteen bytes, and its user."""

    address: bytes
    user: int


def listeners(host: str, port: int) -> set[int] | None:
    """Users who may receive bytes that are sent to a port of this machine; None: the system does not say."""
    found: list[ListeningSocket] | None
    try:
        found = asked(port)
    except (OSError, AttributeError, struct.error):  # no Linux, or one that does not answer this
        found = read(port)
    return None if found is None else reached(host, found)


def reached(host: str, found: Iterable[ListeningSocket]) -> set[int]:
    """Users of the sockets that a connection to this host reaches: one bound to its very address, else one bound to
    all. So another user at another address of the port says nothing."""
    there: set[int] = set()
    known = [*found]
    for address in ("127.0.0.1", "::1") if host == "localhost" else (host.strip("[]"),):
        wanted = _plain(ipaddress.ip_address(address).packed)
        exact = {each.user for each in known if each.address == wanted}
        there |= exact or {each.user for each in known if not any(each.address)}
    return there


def _plain(address: bytes) -> bytes:
    """The address, without the prefix of an IPv4 address that is written as one of IPv6."""
    return address.removeprefix(_MAPPED) if len(address) == 16 else address


def asked(port: int) -> list[ListeningSocket]:
    """Sockets that listen at a port, by a question to the kernel. Raises OSError, and AttributeError on other
    systems."""
    found: list[ListeningSocket] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_PATIENCE)
        for family in (socket.AF_INET, socket.AF_INET6):
            question = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _LISTEN) + bytes(48)
            kernel.send(struct.pack("=IHHII", _HEADER + len(question), _BY_FAMILY, _DUMP, 1, 0) + question)
            while _take(kernel.recv(_PIECE), port, found):
                pass
    return found


def _take(answer: bytes, port: int, found: list[ListeningSocket]) -> bool:
    """Adds the sockets of a piece of an answer. True: there is more to come."""
    at = 0
    while at < len(answer):
        length, kind = struct.unpack_from("=IH", answer, at)
        if kind == _DONE:
            return False
        if kind == _ERROR or length < _HEADER:
            raise OSError("the kernel does not say who listens")
        body = at + _HEADER
        if struct.unpack_from(">H", answer, body + _PORT_AT) == (port,):
            size = 4 if answer[body] == socket.AF_INET else 16
            address = answer[body + _ADDRESS_AT : body + _ADDRESS_AT + size]
            found.append(ListeningSocket(_plain(address), struct.unpack_from("=I", answer, body + _USER_AT)[0]))
        at += (length + 3) & ~3
    return True


def read(port: int, tables: Iterable[Path] = TABLES) -> list[ListeningSocket] | None:
    """Sockets that listen at a port, from the lists of all sockets; None: there are no such lists."""
    found: list[ListeningSocket] = []
    known = False
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        known = True
        for line in lines:
            fields = line.split(None, 8)
            address, _, at = fields[1].partition(":")
            if fields[3] == _LISTENING and int(at, 16) == port:
                words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
                found.append(ListeningSocket(_plain(struct.pack(f"={len(words)}I", *words)), int(fields[7])))
    return found if known else None
