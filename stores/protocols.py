"""Protocols of the stores that can be served to other processes, by the name of each store."""

from __future__ import annotations

from typing import Any

from .checkpoints.checkpoints import Checkpoints
from .control.control import Control
from .dead_letters.dead_letters import DeadLetters
from .drops.drops import Drops
from .heights import Heights
from .inventory.inventory import Inventory
from .jobs.jobs import Jobs
from .ledger.ledger import Ledger
from .log.log import Log
from .ownership.ownership import Ownership
from .queue.queue import Queue
from .replays.replays import Replays
from .results.results import Results
from .schedules.schedules import Schedules
from .segments.segments import Segments
from .troubles import Troubles
from .usage.usage import Usage

PROTOCOLS: dict[str, type[Any]] = {
    "queue": Queue,
    "jobs": Jobs,
    "log": Log,
    "delay_log": Log,
    "delay_queue": Queue,
    "checkpoints": Checkpoints,
    "dead_letters": DeadLetters,
    "drops": Drops,
    "results": Results,
    "control": Control,
    "heights": Heights,
    "inventory": Inventory,
    "ownership": Ownership,
    "ledger": Ledger,
    "segments": Segments,
    "replays": Replays,
    "schedules": Schedules,
    "troubles": Troubles,
    "usage": Usage,
}
