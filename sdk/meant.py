"""Suggestions ("did you mean") for a name that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that are near to it, the nearest first."""
    return difflib.get_close_matches(name, list(known), most)


def meant(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """The end of a refusal: the known name that is nearest, as a question. Where none is near: `otherwise`, by default
    all that are known."""
    known = list(known)
    if near := nearest(name, known):
        return f"did you mean {near[0]!r}?"
    return f"expected {', '.join(known) or 'none'}" if otherwise is None else otherwise
