"""The dead letters' protocol: workloads that will not be tried again by themselves, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...sdk.model.dead_letter import DeadLetter


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


__all__ = ["DeadLetter", "DeadLetters"]
