"""Suggestions ("did you mean") for a name that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that are near to it, the nearest first."""
    return difflib.get_close_matches(name, list(known), most)


def question(near: Iterable[str]) -> str:
    """Whether one of these was meant; empty when there are none."""
    names = " or ".join(map(repr, near))
    return f"did you mean {names}?" if names else ""


def meant(name: str, known: Iterable[str], otherwise: str | None = None, most: int = 1) -> str:
    """The end of a refusal: the known names that are nearest, at most so many, as a question. Where none is near:
    `otherwise`, by default all that are known."""
    known = list(known)
    if asked := question(nearest(name, known, most)):
        return asked
    return f"expected {', '.join(known) or 'none'}" if otherwise is None else otherwise
