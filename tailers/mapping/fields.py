"""Fields of a payload that is JSON, from which a tailer's file takes values."""

from __future__ import annotations

from typing import Any

import msgspec

#: Fields are looked for in payloads up to this size, bytes (about a millisecond of parsing); larger ones have none.
FIELDS_WITHIN = 256 << 10


def fields_of(payload: bytes) -> Any:
    """The content of a payload that is JSON; None: it is something else, or too large."""
    if len(payload) > FIELDS_WITHIN:
        return None
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
