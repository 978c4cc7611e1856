"""Tokens that people and programs show to say who they are. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .name import EXPECTED, is_name
from .plain_text import plain
from .rights import Right, fault_of

#: The beginning of every token, so that scanners for secrets in files find it.
PREFIX = "tailrace_"
#: Bytes of chance in one: it is not guessed, so that one hash of it needs no salt and takes no time.
RANDOM_BYTES = 32
#: Characters of a token that is looked at, tokens in all, rights of one, and days that one may be valid.
LONGEST, MOST_TOKENS, MOST_RIGHTS, LONGEST_DAYS = 200, 1000, 100, 825


@dataclass(frozen=True, slots=True)
class Token:
    """A token under a name of its own. `until`: when it ends (wall clock seconds). Revoked ones are gone."""

    name: str
    hash: str
    rights: tuple[Right, ...]
    until: float
    created: float = 0.0
    created_by: str = ""

    def fault(self) -> str:
        """The fault in this token as a sentence; empty: there is none."""
        if not is_name(self.name):
            return f"{plain(self.name, 100)!r} is not a name: {EXPECTED}"
        if not self.rights or len(self.rights) > MOST_RIGHTS:
            return f"it has {len(self.rights)} rights: expected 1 to {MOST_RIGHTS}"
        if not math.isfinite(self.until):
            return f"it ends at {self.until}: expected a moment"
        return next(filter(None, map(fault_of, self.rights)), "")


def hash_of(secret: str) -> str:
    """A token as it is kept."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def token_to_text(token: Token) -> str:
    """A token as it rests in a control store."""
    said = {name: getattr(token, name) for name in Token.__slots__}
    return json.dumps(said | {"rights": [list(right) for right in token.rights]})


def token_from_text(text: str | bytes) -> Token:
    """The inverse of `token_to_text`; what a later version says beside it is left out."""
    data: Mapping[str, Any] = json.loads(text)
    known = {name: value for name, value in data.items() if name in Token.__slots__}
    return Token(**(known | {"rights": tuple(Right(*each) for each in known["rights"])}))
