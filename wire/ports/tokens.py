"""The port for tokens: what administrators make and revoke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class TokenOrder:
    """A token that is to be made: its name, its rights as texts, for how many seconds it is valid, who says so, and
    why."""

    name: str
    rights: tuple[str, ...]
    lasts: float
    who: str = ""
    why: str = ""


class TokenView(NamedTuple):
    """A token, as everybody may see it. `until` and `created` are wall clock seconds."""

    name: str
    rights: list[str]
    until: float
    created: float
    created_by: str


class MadeToken(NamedTuple):
    """A new token. `secret` is what its holder shows: it is told once, and kept nowhere."""

    secret: str
    view: TokenView


class TokenPort(Protocol):
    """Tokens of people and programs."""

    async def create_token(self, order: TokenOrder) -> MadeToken:
        """Makes one. Raises InvalidRequest, and Conflict where there is one of the name."""

    async def tokens(self) -> list[TokenView]:
        """Those that there are, by name; expired ones too, until they are revoked."""

    async def revoke_token(self, name: str, why: str = "") -> TokenView:
        """Ends one; whoever uses it just now is cut off within a second. Raises InvalidRequest where there is none."""
