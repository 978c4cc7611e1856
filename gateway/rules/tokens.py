"""Tokens that a gateway knows: which one a caller shows, and why it is not to be taken, or not any longer."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.errors import InvalidRequest, Unavailable
from ...model.token import LONGEST, Token, hash_of


class KnownTokens:
    """The tokens of the control store, as they were last read. Invariant: `_by_hash` holds each under its hash."""

    def __init__(self) -> None:
        self._by_hash: dict[str, Token] = {}
        self._read = False

    def replace(self, tokens: Iterable[Token]) -> None:
        """All of them are these."""
        self._by_hash = {token.hash: token for token in tokens}
        self._read = True

    def shown(self, secret: str, now: float) -> Token:
        """The token that somebody shows. Raises InvalidRequest, and Unavailable while none was read yet."""
        if not self._read:
            raise Unavailable("the gateway has not read its tokens yet: its store is away")
        token = self._by_hash.get(hash_of(secret)) if len(secret) <= LONGEST else None
        if token is None:
            raise InvalidRequest(
                "the token is not known here: it was revoked, or is another platform's. `tailrace auth token create` "
                "makes one"
            )
        if why := self.ended(token, now):
            raise InvalidRequest(why)
        return token

    def ended(self, token: Token, now: float) -> str:
        """Why a token that was taken is not to be taken any longer; empty: it is."""
        if self._by_hash.get(token.hash) != token:
            return f"the token {token.name} was revoked"
        if now >= token.until:
            return f"the token {token.name} has expired; `tailrace auth token create` makes another one"
        return ""
