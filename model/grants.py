"""Grants: rights of callers by certificate, where somebody gives some of them less than their role may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .caller import ROLES, Caller
from .did_you_mean import meant
from .errors import InvalidRequest
from .plain_text import plain
from .rights import ANY, Right, right_of

#: Callers, as ROLE/NAME or ROLE/BEGINNING*, → their rights.
Grants = Mapping[str, tuple[Right, ...]]
#: Callers that one file names.
MOST_GRANTS = 1000


def read_grants(given: Mapping[str, Sequence[str]]) -> dict[str, tuple[Right, ...]]:
    """Grants of texts. Raises InvalidRequest."""
    if len(given) > MOST_GRANTS:
        raise InvalidRequest(f"{len(given)} callers: expected at most {MOST_GRANTS}")
    for who in given:
        role, _, name = who.partition("/")
        if role not in ROLES:
            hint = meant(role, ROLES, f"expected one of {', '.join(ROLES)}")
            raise InvalidRequest(f"{plain(who, 200)!r} begins with no role; {hint}")
        if not name or ANY in name[:-1]:
            raise InvalidRequest(
                f"{plain(who, 200)!r} is no caller: expected ROLE/NAME, such as worker/gpu-1 or worker/gpu-*"
            )
    return {who: tuple(map(right_of, rights)) for who, rights in given.items()}


def rights_of(grants: Grants, caller: Caller) -> tuple[Right, ...] | None:
    """The rights of a caller: those of its name, else those of the longest beginning of it. None: nobody says, so that
    it may do all that its role may."""
    name = f"{caller.role}/{caller.name}"
    if name in grants:
        return grants[name]
    begun = [each for each in grants if each.endswith(ANY) and name.startswith(each[:-1])]
    return grants[max(begun, key=len)] if begun else None
