"""Events of jobs: their content when an item ends or a job is complete, and the streams that they go to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ....model.job import JobEvent

#: The bits of events in a tree's row; they never change their meaning.
BITS = {JobEvent.ITEM_SUCCEEDED: 1, JobEvent.ITEM_FAILED: 2, JobEvent.JOB_COMPLETED: 4}
_BY_BIT = {bit: event for event, bit in BITS.items()}

_encode = msgspec.json.Encoder().encode


def mask_of(events: Iterable[str]) -> int:
    """The bits of these events, which must be known ones."""
    return sum({BITS[JobEvent(event)] for event in events})


def stream_of(bit: int) -> str:
    """The stream of the embedded log to which an event is appended."""
    return f"jobs.{_BY_BIT[bit]}"


def event_of(event: JobEvent, tree: str, type: str, job: str, item: str, at: float, **more: Any) -> bytes:
    """The event as JSON: the one argument `event` of the function that receives it. A repeated event has the same id;
    an event of a job has no item. `at`: wall clock seconds."""
    told = {"id": f"{item or f'{tree}/{job}'}:{event}", "event": event, "tree": tree, "type": type, "job": job}
    if item:
        told["item"] = item
    return _encode({"event": told | more | {"at": at}})
