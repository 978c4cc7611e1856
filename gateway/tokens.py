"""The desk for access tokens: administrators make and revoke them, the control store keeps their hashes."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from ..foundation.clock import Clock
from ..model.errors import Conflict, InvalidRequest
from ..model.rights import right_of
from ..model.token import LONGEST_DAYS, MOST_RIGHTS, MOST_TOKENS, PREFIX, RANDOM_BYTES, Token, hash_of
from ..stores.control.control import Control
from ..wire.callers import require_held
from ..wire.ports.tokens import MadeToken, TokenOrder, TokenView
from .authorization import creator

_DAY = 86_400.0


class TokenDesk:
    """Answers calls about access tokens (a TokenPort). `refresh` reads the control store again, so that changes are in
    force here at once."""

    def __init__(self, control: Control, refresh: Callable[[], Awaitable[None]], clock: Clock) -> None:
        self._control = control
        self._refresh = refresh
        self._clock = clock

    async def create_token(self, order: TokenOrder) -> MadeToken:
        """Makes a token, with a secret that is returned once."""
        if not 1 <= order.lasts <= LONGEST_DAYS * _DAY:
            raise InvalidRequest(f"the token lasts {order.lasts:g} s: expected 1 s to {LONGEST_DAYS} days")
        if len(order.rights) > MOST_RIGHTS:
            raise InvalidRequest(f"the token has {len(order.rights)} rights: expected at most {MOST_RIGHTS}")
        rights = tuple(dict.fromkeys(right_of(text) for text in order.rights))
        require_held(rights)
        secret, now = PREFIX + secrets.token_urlsafe(RANDOM_BYTES), self._clock.wall()
        token = Token(order.name, hash_of(secret), rights, now + order.lasts, now, creator(order.who)[:200])
        if fault := token.fault():
            raise InvalidRequest(f"the token cannot be made: {fault}")
        known = (await self._control.snapshot()).tokens
        if len(known) >= MOST_TOKENS:
            raise InvalidRequest(f"there are {MOST_TOKENS} tokens already: revoke some (`tailrace auth token list`)")
        await self._control.put_token(token)
        if token not in (await self._control.snapshot()).tokens:
            raise Conflict(f"a token {order.name!r} exists already: revoke it, or choose another name")
        await self._refresh()
        return MadeToken(secret, _view(token))

    async def tokens(self) -> list[TokenView]:
        """All tokens, by name."""
        return [_view(token) for token in (await self._control.snapshot()).tokens]

    async def revoke_token(self, name: str, why: str = "") -> TokenView:
        """Revokes a token."""
        found = [token for token in (await self._control.snapshot()).tokens if token.name == name]
        if not found:
            raise InvalidRequest(f"no token is named {name[:200]!r}: `tailrace auth token list` shows all tokens")
        await self._control.remove_token(name)
        await self._refresh()
        return _view(found[0])


def _view(token: Token) -> TokenView:
    return TokenView(token.name, [str(right) for right in token.rights], token.until, token.created, token.created_by)
