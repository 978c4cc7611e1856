"""Start and end of turns of tenants in a lane of the queue on SQLite."""

from __future__ import annotations

import sqlite3

from ....model.claim import State
from .floods import FEW, KEPT, Watch, drop_index, firsts, has_index
from .memory import Memory
from .rows import BLOCKED


def see_to_turns(
    connection: sqlite3.Connection, memory: Memory, watch: Watch, lane: int, shut: frozenset[int], now: int
) -> None:
    """Starts turns of tenants in a lane if a flood of one stands before others; ends them if not."""
    tenants = memory.tenant_turns
    turning = lane in tenants.lanes
    first = tenants.first(lane) if turning else memory.earliest[lane]
    flood = watch.is_flood(connection, lane, first, shut, now)
    if not memory.index and has_index(connection):
        memory.index, memory.turned = True, now
    if not flood:
        if turning:
            memory.earliest[lane] = tenants.leave(lane)
    elif not turning:
        tenants.enter(lane, firsts(connection, [*watch.lasts], BLOCKED))
        del memory.earliest[lane]
        memory.passed.pop(lane, None)
    if turning or lane in tenants.lanes:
        memory.turned = now


def end_turns(connection: sqlite3.Connection, memory: Memory, now: int) -> None:
    """Ends turns that nobody needs, because nothing is due. Drops their index some time after the last flood."""
    tenants = memory.tenant_turns
    for lane in [lane for lane, turning in tenants.lanes.items() if not turning.due and not turning.closed]:
        bound = tenants.leave(lane)
        if bound < BLOCKED:
            memory.earliest[lane] = bound
        else:
            memory.watches.pop(lane, None)
        memory.turned = now
    waiting = memory.counts[State.NEW] + memory.counts[State.RETRIABLE_FAILURE]
    if memory.index and not tenants.lanes and now - memory.turned > KEPT and waiting < FEW:
        drop_index(connection)
        memory.index = False
