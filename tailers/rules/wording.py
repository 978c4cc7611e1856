"""Wording of reasons: two that differ in numbers only, such as how long something waited, say the same and are told
once."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"\d+")


def wording(reason: str) -> str:
    """A reason without its numbers."""
    return _NUMBERS.sub("", reason)
