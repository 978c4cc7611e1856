"""A payload by reference: where content lies that is too large to travel, without any secret."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from .errors import InvalidPayload

#: The header that tells such a payload from one that is the content itself.
REFERENCE = ("tailrace-content", "reference")
#: Advice to a caller whose payload is too large.
BY_REFERENCE = (
    "store the data as an object and submit tailrace.Reference(url, key) of it to a function that reads ctx.open()"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """One object, or a part of its content: `tailrace.Reference("s3://uploads", "2026/report.csv")`.

    url       the place, as the worker's file (`objects`) and a source's name it: `s3://bucket/prefix`
    key       the object's key below it
    size      bytes of the object as it is stored
    modified  wall clock seconds of its last change
    version   what pins the version that is meant; empty: whatever is there when it is read
    gzip      the content is what comes out of gzip
    offset    where in the content it begins; length: bytes of content, -1: to the end
    """

    url: str
    key: str
    size: int = 0
    modified: float = 0.0
    version: str = ""
    gzip: bool = False
    offset: int = 0
    length: int = -1

    def encode(self) -> bytes:
        """Encodes the reference as JSON, which a function may take apart by names."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False).encode()


_FIELDS: dict[str, type | tuple[type, ...]] = {
    "url": str, "key": str, "size": int, "modified": (int, float), "version": str, "gzip": bool, "offset": int,
    "length": int,
}  # fmt: skip


def decode(payload: bytes) -> Reference:
    """The reference in a payload. Raises InvalidPayload."""
    try:
        value: Any = json.loads(payload)
    except ValueError:
        raise InvalidPayload("the payload is no reference to content: it is not JSON") from None
    known = {field.name for field in fields(Reference)}
    if not isinstance(value, dict) or not {"url", "key"} <= value.keys() <= known:
        raise InvalidPayload(f"the payload is no reference to content: expected an object of {', '.join(_FIELDS)}")
    for name, each in value.items():
        if not isinstance(each, _FIELDS[name]) or (isinstance(each, bool) and name != "gzip"):
            raise InvalidPayload(f"the payload is no reference to content: {name} is {each!r:.80}")
    return Reference(**value)
