"""The port for access tokens, which administrators make and revoke."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class TokenOrder:
    """An order to make a token: its name, its rights as texts, the seconds for which it is valid, who orders it, and
    why."""

    name: str
    rights: tuple[str, ...]
    lasts: float
    who: str = ""
    why: str = ""


class TokenView(NamedTuple):
    """A token without its secret. `until` and `created` are wall clock seconds."""

    name: str
    rights: list[str]
    until: float
    created: float
    created_by: str


class MadeToken(NamedTuple):
    """A new token. Its holder shows the `secret`, which is returned once, and kept nowhere."""

    secret: str
    view: TokenView


class TokenPort(Protocol):
    """Calls about the access tokens of people and programs."""

    async def create_token(self, order: TokenOrder) -> MadeToken:
        """Makes a token. Raises InvalidRequest, and Conflict where the name is taken."""

    async def tokens(self) -> list[TokenView]:
        """All tokens, by name; expired ones too, until they are revoked."""

    async def revoke_token(self, name: str, why: str = "") -> TokenView:
        """Revokes a token; calls that use it are cut off within a second. Raises InvalidRequest for an unknown name."""
