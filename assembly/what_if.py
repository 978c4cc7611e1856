"""Comparison: a recording played under the quotas in force and under others, and both compared."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from ..foundation import terminal
from ..model.function_spec import FunctionSpec
from ..model.limits import Quota
from ..scheduler.recording import Recording
from ..scheduler.what_if import Played, PlayResult, played

#: Items from which two processes are worth their start.
APART = 20_000


def compare(
    recording: Recording, before: Sequence[Quota], after: Sequence[Quota], functions: Sequence[FunctionSpec]
) -> dict[str, Any]:
    """Plays a recording under both sets of quotas. Returns plain data: of each function and tenant, and of the
    slots."""
    if recording.items < APART:
        plays = [played(recording, quotas, functions) for quotas in (before, after)]
    else:
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=fresh) as pool:
            both = [pool.submit(played, recording, quotas, functions) for quotas in (before, after)]
            plays = [each.result() for each in both]
    old, new = plays
    rows = [
        {"function": who[0], "tenant": who[1], "items": old.by[who].arrived}
        | {"before": _facts(old, old.by[who]), "after": _facts(new, new.by[who])}
        for who in sorted(old.by, key=lambda who: (-old.by[who].arrived, who))
    ]
    return {
        "recording": {
            "seconds": recording.seconds,
            "items": recording.items,
            "tick": recording.tick,
            "lost": recording.lost,
            "hashed": recording.hashed,
            "cut": recording.cut,
        },
        "slots": {"number": old.places, "used_before": round(old.used, 4), "used_after": round(new.used, 4)},
        "traffic": rows,
    }


def _facts(play: PlayResult, each: Played) -> dict[str, Any]:
    """Start delays in seconds, and the share of the waiting that was behind a limit."""
    return {
        "start_delay_p50": round(each.delay(0.5, play.tick), 3),
        "start_delay_p99": round(each.delay(0.99, play.tick), 3),
        "limited": round(each.limited / each.waited, 3) if each.waited else 0.0,
        "slot_seconds": round(each.ticks * play.tick, 3),
        "drain": round(max(0.0, each.last_end - play.seconds), 3),
        "left": each.arrived - each.ended,
    }


def show_comparison(found: dict[str, Any], limit: int) -> None:
    """Shows a comparison to people: before → after, where that differs."""
    recording, slots = found["recording"], found["slots"]
    terminal.say("")
    terminal.say(f"{recording['items']} items in {recording['seconds']:.0f} s, on {slots['number']} slots")
    terminal.say(f"slots in use: {slots['used_before']:.1%} → {slots['used_after']:.1%}")
    if recording["cut"]:
        terminal.say(f"warning: the recording is not whole: {recording['cut']}")
    if recording["lost"]:
        terminal.say(f"warning: {recording['lost']} items were not recorded")
    if recording["hashed"]:
        terminal.say("warning: the recording's tenants are hashes: quotas that name a tenant apply to none of them")
    rows = [
        {"function": row["function"], "tenant": row["tenant"], "items": row["items"]}
        | {
            name: _change(*(_seconds(row[side][fact]) for side in ("before", "after")))
            for name, fact in (("p50", "start_delay_p50"), ("p99", "start_delay_p99"))
        }
        | {"limited": _change(*(f"{row[side]['limited']:.0%}" for side in ("before", "after")))}
        | {"drain": _change(*(_drain(row[side]) for side in ("before", "after")))}
        for row in found["traffic"][:limit]
    ]
    terminal.say("")
    terminal.show(rows, ["function", "tenant", "items", "p50", "p99", "limited", "drain"], False)
    if len(found["traffic"]) > limit:
        terminal.say(f"and {len(found['traffic']) - limit} more: --limit shows them, --json all")


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _drain(side: dict[str, Any]) -> str:
    return f"{side['left']} left" if side["left"] else f"{side['drain']:.1f} s"
