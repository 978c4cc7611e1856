"""The quotas that are in force at schedulers, as each has said of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InForce:
    """The quotas that a scheduler has, as it said.

    version   of the quotas; 0: it has not said yet, or there are none
    at        when it said so, wall clock seconds; 0: never
    ended     when it stopped listening for changes, if it did: it goes on with what it has; 0: it listens
    """

    scheduler: str
    version: int = 0
    at: float = 0.0
    ended: float = 0.0
