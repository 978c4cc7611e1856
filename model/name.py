"""Names: what a function, a collection, a tenant, a pool, a tailer or a schedule may be called."""

from __future__ import annotations

import re

from .errors import InvalidRequest

#: Characters of a name, at most.
NAME_LENGTH = 200
NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.\-/:]*"
#: The pattern as PostgreSQL reads it, where nothing is escaped between brackets.
NAME_PATTERN_SQL = "[A-Za-z0-9_][A-Za-z0-9_./:-]*"
#: The beginning of the names of functions that the platform has itself.
RESERVED = "tailrace."
#: The rule as a refusal says it.
EXPECTED = f"expected 1 to {NAME_LENGTH} letters, digits or _ . - / : that start with a letter, digit or _"

_NAME = re.compile(NAME_PATTERN)


def is_name(text: str) -> bool:
    """Whether something may be called so."""
    return len(text) <= NAME_LENGTH and _NAME.fullmatch(text) is not None


def check_not_reserved(what: str, name: str) -> None:
    """Raises InvalidRequest for the name of a function that only the platform itself may have."""
    if name.startswith(RESERVED):
        raise InvalidRequest(
            f"{what} {name[:NAME_LENGTH]!r} begins with {RESERVED!r}, as only the platform's own do: choose "
            "another name"
        )
