"""The checkpoints' protocol: how far each stream is done, and under which epoch.

Step 1 keeps here the little of ownership that fences and restarts need (an epoch, and whether the last owner left
nothing running); the ownership rows of DESIGN section 4 come with step 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Mark(NamedTuple):
    """`position`: everything below it is settled. `ahead`: what is settled above it, as `frontier.py` encodes it."""

    position: int
    ahead: bytes = b""


@dataclass(slots=True)
class Opened:
    """A source as its new owner finds it. `clean`: the previous owner left nothing running, so there is no need to
    wait; `lease`: else wait for a source lease of so many seconds, stretched by the drift."""

    epoch: int
    clean: bool
    lease: float
    marks: dict[str, Mark]


class Checkpoints(Protocol):
    """Durable when a method returns."""

    async def open(self, source: str, lease: float) -> Opened:
        """Starts a new epoch of the source: writes of older ones are refused from now on. `lease` is noted for
        whoever comes next."""

    async def commit(self, source: str, epoch: int, marks: Mapping[str, Mark]) -> None:
        """Moves marks forward, by partition; one that would go back is left as it is. Raises StaleFence when the
        epoch is not the newest."""

    async def release(self, source: str, epoch: int) -> None:
        """Notes that nothing of this epoch is running any more. Raises StaleFence likewise."""

    async def load(self, source: str) -> dict[str, Mark]:
        """The marks, without taking the source."""
