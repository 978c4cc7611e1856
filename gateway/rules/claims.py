"""Claims of a token that an OpenID Connect issuer signed → who shows it, until when, and with which rights; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...model.errors import InvalidRequest
from ...model.plain_text import plain
from ...model.rights import Right
from ...model.token import Token

#: Seconds that an issuer's clock may be ahead.
AHEAD = 60.0
#: Characters of a name that are kept, and values of a claim that are looked at.
NAME_SHOWN, MOST_VALUES = 100, 1000


def token_of(
    claims: Mapping[str, Any],
    *,
    issuer: str,
    audience: str,
    claim: str,
    rights: Mapping[str, tuple[Right, ...]],
    now: float,
) -> Token:
    """The token that claims make of one whose signature is right: with the rights of each value of `claim`. Raises
    InvalidRequest for one that is of somebody else, or not for here, or not for now."""
    if claims.get("iss") != issuer:
        raise InvalidRequest(f"the token is issued by {_shown(claims.get('iss'))}, not by {issuer}")
    meant = claims.get("aud")
    if audience not in ([meant] if isinstance(meant, str) else meant if isinstance(meant, list) else []):
        raise InvalidRequest(
            f"the token is meant for {_shown(meant)}, not for {audience!r}: ask the issuer for one for here"
        )
    subject, until = claims.get("sub"), _moment(claims, "exp")
    if not isinstance(subject, str) or not subject:
        raise InvalidRequest("the token does not say whose it is: it has no sub")
    if until is None:
        raise InvalidRequest("the token does not say when it ends: it has no exp")
    if now >= until:
        raise InvalidRequest("the token has expired: ask the issuer for another one")
    if (_moment(claims, "nbf") or 0.0) > now + AHEAD:
        raise InvalidRequest("the token is not valid yet: is a clock off?")
    named = claims.get(claim)
    values = named[:MOST_VALUES] if isinstance(named, list) else [named]
    granted = [right for value in values if isinstance(value, str) for right in rights.get(value, ())]
    if not granted:
        raise InvalidRequest(
            f"the token gives no rights here: its {claim} is {_shown(named)}; `oidc` in gateway.yaml says which do"
        )
    return Token(plain(subject, NAME_SHOWN), "", tuple(dict.fromkeys(granted)), until)


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _shown(value: object) -> str:
    return plain(repr(value), 200)
