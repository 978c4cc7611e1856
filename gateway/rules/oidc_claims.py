"""Claims of a token that an OpenID Connect issuer signed → a Token with a name, an end and rights; pure."""

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
    """The token of claims whose signature is right, with the rights of all values of `claim`. Raises InvalidRequest for
    a wrong issuer or audience, a time outside of its validity, or no rights."""
    if claims.get("iss") != issuer:
        raise InvalidRequest(f"the token is issued by {_shown(claims.get('iss'))}, not by {issuer}")
    meant = claims.get("aud")
    if audience not in ([meant] if isinstance(meant, str) else meant if isinstance(meant, list) else []):
        raise InvalidRequest(
            f"the token is meant for {_shown(meant)}, not for {audience!r}: ask the issuer for a token for that one"
        )
    subject, until = claims.get("sub"), _moment(claims, "exp")
    if not isinstance(subject, str) or not subject:
        raise InvalidRequest("the token has no sub, its subject: ask the issuer for a token that has")
    if until is None:
        raise InvalidRequest("the token has no exp, its end: ask the issuer for a token that has")
    if now >= until:
        raise InvalidRequest("the token has expired: ask the issuer for another one")
    if (_moment(claims, "nbf") or 0.0) > now + AHEAD:
        raise InvalidRequest("the token is not valid yet (nbf): check the clocks of the issuer and of the gateway")
    named = claims.get(claim)
    values = named[:MOST_VALUES] if isinstance(named, list) else [named]
    granted = [right for value in values if isinstance(value, str) for right in rights.get(value, ())]
    if not granted:
        raise InvalidRequest(
            f"the token gives no rights here: its {claim} is {_shown(named)}; `oidc` in gateway.yaml has other values"
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
