"""A dead letter: a workload that will not be tried again by itself, with its reasons."""

from __future__ import annotations

from dataclasses import dataclass

from .workload import Headers, Kind


@dataclass(slots=True)
class DeadLetter:
    """`outcome` is the Outcome's name in lower case; `tailer` is where it came from; times are wall clock seconds."""

    id: str
    tailer: str
    kind: Kind
    payload: bytes
    outcome: str
    reason: str
    attempts: int
    crashes: int
    first_seen: float
    died_at: float
    key: str = ""
    headers: Headers = ()
    progress: str = ""
