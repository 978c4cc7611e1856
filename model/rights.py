"""Rights: who may do what, on which functions, collections and tenants. What nobody granted nobody may."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .did_you_mean import meant
from .errors import InvalidRequest
from .name import NAME_LENGTH, is_name
from .plain_text import plain

#: To submit workloads; to read what became of them, and their payloads; to run functions; to operate them (gates,
#: quotas, schedules, dead letters, cancelling); to administer tokens, files, and what concerns every function.
ACTIONS = ("administer", "operate", "read", "run", "submit")
ANY = "*"
_SHAPE = "expected ACTION[:FUNCTION][#COLLECTION][@TENANT], such as submit:send_email@acme or read:mail.*"


class Need(NamedTuple):
    """The need of a call: the action, and on what. An empty function is every one; an empty collection or tenant is
    every one, or, of a workload, none."""

    action: str
    function: str = ""
    collection: str = ""
    tenant: str = ""

    def __str__(self) -> str:
        return written(self.action, self.function or ANY, self.collection or ANY, self.tenant or ANY)


class Right(NamedTuple):
    """A right that was granted. Each field but the action is a name, the beginning of one (`mail.*`), or `*`."""

    action: str
    function: str = ANY
    collection: str = ANY
    tenant: str = ANY

    def __str__(self) -> str:
        return written(*self)

    def covers(self, need: Need) -> bool:
        """Whether it is enough for what a call does."""
        return self.action == need.action and all(map(_fits, self[1:], need[1:]))

    def includes(self, other: Right) -> bool:
        """Whether it allows all that another right does."""
        return self.action == other.action and all(map(_holds, self[1:], other[1:]))


def written(action: str, function: str, collection: str, tenant: str) -> str:
    """A right, or what a call needs, as `right_of` reads it."""
    text = action if function == ANY else f"{action}:{function}"
    text += "" if collection == ANY else f"#{collection}"
    return text + ("" if tenant == ANY else f"@{tenant}")


def _fits(granted: str, needed: str) -> bool:
    """An empty need is more than any name."""
    if granted.endswith(ANY):
        return granted == ANY or (needed != "" and needed.startswith(granted[:-1]))
    return granted == needed != ""


def _holds(wide: str, narrow: str) -> bool:
    """Whether a name, or the beginning of one, stands for all that another stands for."""
    return wide in (ANY, narrow) or (wide.endswith(ANY) and narrow.removesuffix(ANY).startswith(wide[:-1]))


def not_held(rights: Iterable[Right], wanted: Iterable[Right]) -> Right | None:
    """The first of the wanted rights that none of these includes; None: they include all."""
    rights = tuple(rights)
    return next((each for each in wanted if not any(right.includes(each) for right in rights)), None)


def widest(rights: Iterable[Right], need: Need) -> Right | None:
    """The widest of the rights that are enough; None: none is."""
    enough = [right for right in rights if right.covers(need)]
    return next((each for each in enough if not any(other.includes(each) for other in enough if other != each)), None)


def missing(rights: Iterable[Right], needs: Iterable[Need]) -> Need | None:
    """The first need that no right covers; None: all may be done."""
    rights = tuple(rights)
    return next((need for need in needs if not any(right.covers(need) for right in rights)), None)


def sentence(name: str, rights: Iterable[Right], need: Need) -> str:
    """The message for a caller that lacks a right."""
    has = ", ".join(map(str, rights)) or "none"
    return f"{name} may not do this: it needs the right {need}, and has {has}"


def right_of(text: str) -> Right:
    """The right that a text says. Raises InvalidRequest."""
    rest, _, tenant = text.partition("@")
    rest, _, collection = rest.partition("#")
    action, _, function = rest.partition(":")
    if action not in ACTIONS:
        hint = meant(action, ACTIONS, f"expected one of {', '.join(ACTIONS)}")
        raise InvalidRequest(f"{plain(action, NAME_LENGTH)!r} is not an action that a right can allow; {hint}")
    right = Right(action, function or ANY, collection or ANY, tenant or ANY)
    if fault := fault_of(right):
        raise InvalidRequest(f"{plain(text, NAME_LENGTH)!r} is no right: {fault}; {_SHAPE}")
    return right


def fault_of(right: Right) -> str:
    """The fault in a right as a sentence; empty: there is none."""
    if right.action not in ACTIONS:
        return f"the action {plain(right.action, NAME_LENGTH)!r} is not one of {', '.join(ACTIONS)}"
    for what, value in zip(("function", "collection", "tenant"), right[1:], strict=True):
        if value != ANY and not is_name(value.removesuffix(ANY)):
            return f"the {what} {plain(value, NAME_LENGTH)!r} is not a name, nor the beginning of one with * behind it"
    return ""
