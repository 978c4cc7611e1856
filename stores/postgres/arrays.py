"""Columns as arguments of a statement in PostgreSQL: each is one array, written as text where that is quicker than by
the driver (an array of a thousand numbers is a join)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: The replacement of NUL, which a text of PostgreSQL cannot hold.
UNSHOWN = "\ufffd"


def numbers(values: Iterable[int | None]) -> str:
    """An array of whole numbers; None becomes NULL."""
    return "{" + ",".join("NULL" if each is None else str(each) for each in values) + "}"


def floats(values: Iterable[float]) -> str:
    """An array of floats, with their exact values."""
    return "{" + ",".join(repr(float(each)) for each in values) + "}"


def truths(values: Iterable[bool]) -> str:
    """An array of truth values."""
    return "{" + ",".join("t" if each else "f" for each in values) + "}"


def texts(values: Iterable[str]) -> str:
    """An array of texts; a NUL becomes UNSHOWN."""
    quoted = (each.replace("\0", UNSHOWN).replace("\\", "\\\\").replace('"', '\\"') for each in values)
    return '{"' + '","'.join(quoted) + '"}' if values else "{}"


def texts_or_none(values: Iterable[str | None]) -> str:
    """An array of texts; None becomes NULL."""
    return "{" + ",".join("NULL" if each is None else texts((each,))[1:-1] for each in values) + "}"


def blobs(values: Sequence[bytes]) -> str:
    """An array of bytes."""
    return '{"\\\\x' + '","\\\\x'.join(each.hex() for each in values) + '"}' if values else "{}"


def shown(text: str) -> str:
    """A text for people, with NULs and halves of characters replaced: a text of PostgreSQL cannot hold them."""
    return text.replace("\0", UNSHOWN).encode("utf-8", "replace").decode()


__all__ = ["blobs", "floats", "numbers", "shown", "texts", "texts_or_none", "truths"]
