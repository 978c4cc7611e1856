"""The state: all data about streams and for operators, in one place, on one engine.

Its stores are together because they are used together: an owner's epoch fences its checkpoints and its ledger, and a
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
    """The base that all stores of a state share: one file, or one server."""

    async def open(self) -> None:
        """Opens the file or checks the server. Raises ConfigError for one that cannot be trusted with a state; a server
        that cannot be reached now is checked at its next use. Harmless when open."""

    async def rebind(self, what: str, seen: str, text: str) -> str:
        """Binds a log that is a file of a node (`what`: `log` or `delay_log`) to this state by this text (bindings.py),
        if the text that is there is still the `seen` one; empty: there is none. Returns the text that is there now.
        The binding stays for good: the checkpoints here are positions in that log."""

    def stay_quiet(self, until: float) -> None:
        """Has no stream taken before that moment of the monotonic clock."""

    async def sweep(self) -> int:
        """Forgets some data that is past its retention; returns how much. Called now and then."""

    async def close(self) -> None:
        """Closes the file or the connections. Harmless when closed."""


@dataclass(frozen=True)
class StateStores:
    """One store of each kind, and the base that they share."""

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
