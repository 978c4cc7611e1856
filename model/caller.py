"""Callers beyond one machine: fleet, role and name, as a certificate says them by a URI among its alternative names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .did_you_mean import meant
from .errors import InvalidRequest
from .plain_text import plain

SCHEME = "tailrace://"
#: The roles. A node is whoever holds stores or the delay service, and what runs beside them.
ROLES = ("client", "gateway", "node", "operator", "scheduler", "tailer", "worker")
#: Characters of a URI that are shown, and of a fleet's or a caller's name.
SHOWN = 200
LONGEST = 64
_WORD = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST - 1}}}")
_EXAMPLE = f"{SCHEME}FLEET/worker/NAME"


class Caller(NamedTuple):
    """A part, a program or a person of a fleet."""

    fleet: str
    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role} {self.name} of fleet {self.fleet}"

    @property
    def named(self) -> str:
        """The role and the certified name."""
        return f"{self.role} {self.name}"

    def signs(self, word: str) -> str:
        """The name of an act's author: what it calls itself, if that is one word and so passes for nobody else's role,
        and its role and certified name."""
        shown = word[:SHOWN] if word.isprintable() and " " not in word else ""
        return f"{shown} as {self.named}".strip()

    @property
    def uri(self) -> str:
        """The name in a certificate that says this."""
        return f"{SCHEME}{self.fleet}/{self.role}/{self.name}"


def caller_of(uris: Iterable[str]) -> Caller:
    """The caller that the names of a certificate say. Raises InvalidRequest for none, several, or wrong ones."""
    ours = [uri for uri in uris if uri.startswith(SCHEME)]
    if len(ours) != 1:
        raise InvalidRequest(
            f"it has {'no URI' if not ours else f'{len(ours)} URIs'} of this platform among its alternative names: "
            f"expected one, such as {_EXAMPLE}"
        )
    parts = ours[0].removeprefix(SCHEME).split("/")
    if len(parts) != 3:
        raise InvalidRequest(f"its name is {plain(ours[0], SHOWN)!r}: expected {_EXAMPLE}")
    return checked(Caller(*parts))


def checked(caller: Caller) -> Caller:
    """Returns the caller unchanged when its fleet, name and role are valid. Raises InvalidRequest for any other."""
    for what, word in (("fleet", caller.fleet), ("name", caller.name)):
        if not _WORD.fullmatch(word):
            raise InvalidRequest(
                f"{plain(word, SHOWN)!r} is no {what} of a fleet: expected 1 to {LONGEST} letters, digits and . _ -, "
                "and a letter or digit first"
            )
    if caller.role not in ROLES:
        hint = meant(caller.role, ROLES, f"expected {', '.join(ROLES)}")
        raise InvalidRequest(f"{plain(caller.role, SHOWN)!r} is no role; {hint}")
    return caller
