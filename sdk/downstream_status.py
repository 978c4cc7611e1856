"""The state of downstreams, asked of the scheduler that is found on this machine, in words for commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..foundation import terminal
from ..model.errors import TailraceError, Unavailable
from ..wire.v1 import scheduler_pb2 as pb
from .discovery import find_scheduler


async def ask(scheduler: str | None = None) -> pb.InspectReply:
    """Asks the scheduler for its state of downstreams and of rates in units; empty where none answers."""
    from ..wire.scheduler import SchedulerClient

    try:
        found = find_scheduler(scheduler)
        client = SchedulerClient(found.addresses[0], found.reason)
    except TailraceError:
        return pb.InspectReply()
    try:
        return await client.inspect()
    except Unavailable:
        return pb.InspectReply()
    finally:
        await client.close()


def sentence(state: pb.DownstreamState, now: float) -> str:
    """Says how much a downstream takes now, and why."""
    since = f"; it shrank {terminal.distance(now - state.shrank_at)} ago" if state.shrank_at else ""
    why = f": {state.reason}" if state.reason else ""
    if state.state == "closed":
        return f"closed, one item probes it in {terminal.distance(max(0.0, state.probe_at - now))}{why}"
    if state.state == "probing":
        return f"closed, one item probes it now{why}"
    if state.HasField("rate"):
        return f"{state.rate:.4g} starts per second{since}{why}"
    return state.state


def unit_sentence(state: pb.UnitState) -> str:
    """Says how much a rate in a unit has left."""
    had = f"{state.left:,.10g} of {state.burst:,.10g}" if state.left >= 0 else f"a debt of {-state.left:,.10g}"
    return f"{state.unit}: {had}" + (f", {state.waiting} kinds wait" if state.waiting else "")


def rows(states: Iterable[pb.DownstreamState], now: float) -> list[dict[str, Any]]:
    """The rows of a table, one for each downstream."""
    return [
        {
            "downstream": each.downstream,
            "tenant": each.tenant,
            "state": each.state,
            "now": sentence(each, now),
            "running": each.running,
            "throttled": each.throttled,
        }
        for each in states
    ]
