"""The queue's protocol: a distributed priority queue in the manner of FOQS (Meta) and ATF's task store (Dropbox).

Times are wall clock seconds of the store's own clock unless said otherwise. The effects of a method are durable when it
returns.
"""

from __future__ import annotations

from typing import Protocol

from ...model.claim import Leased, Renewed, Settle, State
from .counts import Ageing, QueueCounts, Tally
from .intake import NewItem, QueueIntake, Submitted
from .items import ItemContent, QueueItems, Reschedule
from .leases import QueueLeases
from .lookup import Page, QueueLookup, Status

#: Characters of a reason and of a progress note that an engine keeps.
REASON, PROGRESS = 4096, 1024


class Queue(QueueIntake, QueueLeases, QueueLookup, QueueItems, QueueCounts, Protocol):
    """A queue as an engine provides it: all five ports. Parts that need one port take only that one."""


__all__ = [
    "Ageing",
    "ItemContent",
    "Leased",
    "NewItem",
    "Page",
    "Queue",
    "Renewed",
    "Reschedule",
    "Settle",
    "State",
    "Status",
    "Submitted",
    "Tally",
]
