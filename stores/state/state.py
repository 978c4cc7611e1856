"""The state: everything that is known of streams and for operators, in one place, whichever engine it has.

Its kinds rest together because they are used together: an owner's epoch fences its checkpoints and its ledger, and a
copy of one of them without the others would be worth nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

from ..checkpoints.checkpoints import Checkpoints
from ..control.control import Control
from ..dead_letters.dead_letters import DeadLetters
from ..drops.drops import Drops
from ..inventory.inventory import Inventory
from ..ledger.ledger import Ledger
from ..ownership.ownership import Ownership
from ..replays.replays import Replays
from ..results.results import Results
from ..schedules.schedules import Schedules
from ..segments.segments import Segments
from ..usage.usage import Usage


class StateGround(Protocol):
    """The ground of a state: one file, or one server."""

    async def open(self) -> None:
        """Looks at what it rests on. Raises ConfigError for what cannot be trusted with a state; a server that cannot
        be reached now is tried again at each use. Harmless when open."""

    async def bind(self, what: str, node: str) -> str:
        """Notes that a log which is a file of a node, `log` or `delay_log`, goes with this state, unless another node's
        does already; returns the node that it is. For good: the checkpoints here are positions there."""

    def stay_quiet(self, until: float) -> None:
        """No stream is taken before that moment of the monotonic clock."""

    async def sweep(self) -> int:
        """Forgets some of what is past its retention; how much. Called now and then."""

    async def close(self) -> None:
        """Closes what it has open. Harmless when closed."""


@dataclass(frozen=True)
class StateStores:
    """One store of each kind, and what they rest on together."""

    ground: StateGround
    checkpoints: Checkpoints
    control: Control
    dead_letters: DeadLetters
    drops: Drops
    inventory: Inventory
    ledger: Ledger
    ownership: Ownership
    replays: Replays
    results: Results
    schedules: Schedules
    segments: Segments
    usage: Usage

    def engines(self) -> dict[str, object]:
        """The stores by their names (stores/protocols.py)."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "ground"}


__all__ = ["StateGround", "StateStores"]
