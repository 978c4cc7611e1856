"""Feeding: what a parent's result becomes for the jobs behind it. Bytes around bytes: only `each` reads a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

#: The result of a function that returned nothing.
NOTHING = b"null"


class TooLarge(Exception):
    """A result of which no payload can be made; the text says why."""


class NoList(Exception):
    """A result of which each element was to become an item, and that is no list."""


def payload_of(prefix: bytes, result: bytes, suffix: bytes, most: int, job: str) -> bytes:
    """The payload of a child's item. Raises TooLarge."""
    size = len(prefix) + len(result) + len(suffix)
    if size > most:
        raise TooLarge(
            f"its result has {len(result)} bytes, and a payload for the job {job!r} may have {most}: return a "
            "reference to where it lies"
        )
    return prefix + result + suffix


def list_of(results: Iterable[bytes]) -> bytes:
    """All results as one list."""
    return b"[" + b",".join(results) + b"]"


def elements(result: bytes, job: str) -> Sequence[bytes]:
    """Each element of a result that is a list; of nothing there is none. Raises NoList."""
    try:
        return [bytes(each) for each in msgspec.json.decode(result, type=list[msgspec.Raw] | None) or ()]
    except msgspec.DecodeError:
        raise NoList(f"each element of its result was to become an item of {job!r}, and it is no list") from None


def around(argument: str) -> tuple[bytes, bytes]:
    """The bytes before and behind a result that make it the one argument of this name; empty: it is the payload."""
    return (b"{" + msgspec.json.encode(argument) + b":", b"}") if argument else (b"", b"")
