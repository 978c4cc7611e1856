"""The dead letters' protocol: workloads that will not be tried again by themselves, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...sdk.model.workload import Headers, Kind


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


class DeadLetters(Protocol):
    """Durable when a method returns."""

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        """Keeps the letters; one with a known id replaces it."""

    async def list(self, function: str, limit: int, after: str = "") -> list[DeadLetter]:
        """Oldest first, of one function or of all (""), after the letter with id `after`; payloads left empty."""

    async def get(self, id: str) -> DeadLetter | None:
        """One letter with its payload."""

    async def remove(self, ids: Sequence[str]) -> int:
        """Forgets letters; returns how many there were."""

    async def count(self) -> int:
        """How many there are."""
