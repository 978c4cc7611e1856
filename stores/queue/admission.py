"""Which items cannot be stored: the same on every engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...sdk.model.errors import InvalidPayload, InvalidRequest
from .queue import NewItem

#: What a submission's own id is kept as among the dedupe keys. Users' may not begin with it.
SUBMISSION_PREFIX = "submission:"
#: The latest moment that is a moment: the year 9999.
_LATEST = 253_402_300_800.0


def check(items: Sequence[NewItem], max_payload: int) -> None:
    """Raises InvalidPayload or InvalidRequest for the first item that cannot be stored."""
    for index, item in enumerate(items):
        if len(item.payload) > max_payload:
            raise InvalidPayload(
                f"workload {index} for {item.kind.function!r}: its payload has {len(item.payload)} bytes, at most "
                f"{max_payload} are allowed; store it elsewhere and submit a reference"
            )
        for name, moment in (("due", item.due), ("expires_at", item.expires_at)):
            if moment and not (math.isfinite(moment) and 0 < moment < _LATEST):
                raise InvalidRequest(
                    f"workload {index} for {item.kind.function!r}: {name} is {moment}: expected seconds since 1970"
                )
