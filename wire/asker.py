"""Askers: the name and the place of whoever asks a server to act, from the caller's own words, its certificate or
token, and the address of its connection."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from ..foundation.identity import whoami
from .callers import CALLER

#: Metadata with the name of the asker, quoted as in URLs: metadata is ASCII.
_WHO = "tailrace-who"
#: The place of an asker that uses a socket or the loopback of this machine.
HERE = "this machine"
#: Characters of a name that is looked at.
_LONGEST = 600


class Asker(NamedTuple):
    """A caller: `who` it says that it is, and the `place` (host) it calls from."""

    who: str = ""
    place: str = HERE


#: The asker of the running code's work; None: nobody, the process does it by itself.
ASKER: contextvars.ContextVar[Asker | None] = contextvars.ContextVar("tailrace-asker", default=None)


def asking() -> Sequence[tuple[str, str]]:
    """The metadata that names this user."""
    return ((_WHO, quote(whoami(), safe="@")[:_LONGEST]),)


def asker_of(context: Any) -> Asker:
    """The asker of a call: its own words with the name of its certificate or token; and its address."""
    who = ""
    for key, value in context.invocation_metadata() or ():
        if key == _WHO and isinstance(value, str):
            who = unquote(value[:_LONGEST])
    caller = CALLER.get()
    if caller is not None:
        who = caller.signs(who)
    return Asker(who, place_of(context.peer()))


def place_of(peer: str) -> str:
    """The host of a gRPC peer (`ipv4:10.0.0.7:4711`, `ipv6:%5B::1%5D:4711`, `unix:`)."""
    kind, _, rest = unquote(peer).partition(":")
    host = rest.rpartition(":")[0].strip("[]")
    return HERE if kind not in ("ipv4", "ipv6") or host.startswith("127.") or host == "::1" else host
