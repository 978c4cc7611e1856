"""Access tokens that a gateway knows: the token of a secret, and the reason not to accept it, or not any longer."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.errors import InvalidRequest, Unavailable
from ...model.token import LONGEST, Token, hash_of


class KnownTokens:
    """The tokens of the control store, as they were last read. A token that has ended stays ended, though the clock is
    set back. Invariants: `_by_hash` holds each under its hash; `_ended` has hashes of those that have ended."""

    def __init__(self) -> None:
        self._by_hash: dict[str, Token] = {}
        self._ended: set[str] = set()
        self._read = False

    def replace(self, tokens: Iterable[Token]) -> None:
        """Replaces all tokens."""
        self._by_hash = {token.hash: token for token in tokens}
        self._ended &= self._by_hash.keys()
        self._read = True

    def over(self, now: float) -> list[Token]:
        """The tokens that have ended."""
        return [token for token in self._by_hash.values() if self._is_over(token, now)]

    def _is_over(self, token: Token, now: float) -> bool:
        if now >= token.until:
            self._ended.add(token.hash)
        return token.hash in self._ended

    def shown(self, secret: str, now: float) -> Token:
        """The token of a secret. Raises InvalidRequest for an unknown or expired one, Unavailable before the first
        read."""
        if not self._read:
            raise Unavailable("the gateway has not read its tokens yet: its store is away")
        token = self._by_hash.get(hash_of(secret)) if len(secret) <= LONGEST else None
        if token is None:
            raise InvalidRequest(
                "the token is not known here: it was revoked, has expired, or belongs to another platform; "
                "`tailrace auth token create` makes a new one"
            )
        if why := self.ended(token, now):
            raise InvalidRequest(why)
        return token

    def ended(self, token: Token, now: float) -> str:
        """The reason not to accept a token any longer; empty: it is accepted."""
        if self._is_over(token, now):
            return f"the token {token.name} has expired; `tailrace auth token create` makes another one"
        if self._by_hash.get(token.hash) != token:
            return f"the token {token.name} was revoked"
        return ""
