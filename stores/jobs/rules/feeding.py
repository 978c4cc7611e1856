"""Feeding: makes payloads for the next jobs of a parent's result. It puts bytes around bytes; only `each` parses a
result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

#: The result of a function that returned nothing.
NOTHING = b"null"


class TooLarge(Exception):
    """A result that is too large for a payload; the text says why."""


class NoList(Exception):
    """A result that should have been a list, one item for each element, and is none."""


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
    """Elements of a result that is a list; none for an empty result. Raises NoList."""
    try:
        return [bytes(each) for each in msgspec.json.decode(result, type=list[msgspec.Raw] | None) or ()]
    except msgspec.DecodeError:
        raise NoList(f"each element of its result was to become an item of {job!r}, and it is no list") from None


def around(argument: str) -> tuple[bytes, bytes]:
    """Bytes before and after a result that make it the value of this one argument; empty: the result is the whole
    payload."""
    return (b"{" + msgspec.json.encode(argument) + b":", b"}") if argument else (b"", b"")
