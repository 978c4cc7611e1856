"""Grants: rights of callers by certificate, where somebody gives some of them less than their role may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .caller import ROLES, Caller
from .did_you_mean import meant
from .errors import InvalidRequest
from .plain_text import plain
from .rights import ANY, Need, Right, missing, right_of

#: Callers, as ROLE/NAME or ROLE/BEGINNING*, → their rights.
Grants = Mapping[str, tuple[Right, ...]]
#: Callers that one file names.
MOST_GRANTS = 1000
#: Roles, and what each does that rights are about. A scheduler and a gateway act for all functions at once.
MEANT: Mapping[str, tuple[str, ...]] = {
    "client": ("operate", "read", "submit"),
    "node": ("operate", "read", "run", "submit"),
    "operator": ("administer", "operate", "read", "submit"),
    "tailer": ("submit",),
    "worker": ("operate", "read", "run", "submit"),
}


class GrantedRights(NamedTuple):
    """The rights of a caller, who is called so in refusals."""

    name: str
    rights: tuple[Right, ...]

    def may(self, need: Need) -> bool:
        """Whether they are enough."""
        return missing(self.rights, [need]) is None

    def may_some(self, action: str, function: str = "") -> bool:
        """Whether there is something on which they are enough: of this function, if one is named."""
        return any(
            right.action == action
            and (not function or right._replace(collection=ANY, tenant=ANY).covers(Need(action, function)))
            for right in self.rights
        )


def read_grants(given: Mapping[str, Sequence[str]]) -> dict[str, tuple[Right, ...]]:
    """Grants of texts. Raises InvalidRequest."""
    if len(given) > MOST_GRANTS:
        raise InvalidRequest(f"{len(given)} callers: expected at most {MOST_GRANTS}")
    for who in given:
        role, _, name = who.partition("/")
        if role not in ROLES:
            hint = meant(role, ROLES, f"expected one of {', '.join(ROLES)}")
            raise InvalidRequest(f"{plain(who, 200)!r} does not begin with a role; {hint}")
        if not name or ANY in name[:-1]:
            raise InvalidRequest(
                f"{plain(who, 200)!r} is no caller: expected ROLE/NAME, such as worker/gpu-1 or worker/gpu-*"
            )
    found = {who: tuple(map(right_of, rights)) for who, rights in given.items()}
    for who, rights in found.items():
        _check_meant(who, rights)
    return found


def _check_meant(who: str, rights: Sequence[Right]) -> None:
    """Raises InvalidRequest for rights that would do nothing."""
    role = who.partition("/")[0]
    actions = MEANT.get(role)
    if actions is None:
        raise InvalidRequest(
            f"{plain(who, 200)!r}: a {role} acts for all functions at once, and rights would take nothing from it; "
            f"leave it out, and name callers of the roles {', '.join(MEANT)}"
        )
    for right in rights:
        if right.action not in actions:
            raise InvalidRequest(
                f"{plain(who, 200)!r} has {str(right)!r}, and a {role} does nothing that needs the right "
                f"{right.action}; expected {' or '.join(actions)}"
            )


def rights_of(grants: Grants, caller: Caller) -> tuple[Right, ...] | None:
    """The rights of a caller: those of its name, else those of the longest beginning of it. None: nobody says, so that
    it may do all that its role may."""
    name = f"{caller.role}/{caller.name}"
    if name in grants:
        return grants[name]
    begun = [each for each in grants if each.endswith(ANY) and name.startswith(each[:-1])]
    return grants[max(begun, key=len)] if begun else None
