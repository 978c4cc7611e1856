"""Messages that refuse to show or change one workload: its state, and what can be done instead."""

from __future__ import annotations

from ...model.claim import State
from ...model.one_item import BEHIND, ENDED, EXPIRES, OUT, UNKNOWN
from ...model.status import SPOOLED, WorkloadStatus
from ...model.units import duration_text


def is_of_stream(id: str) -> bool:
    """Whether an id names the item of a stream: TAILER/PARTITION/POSITION."""
    return id.count("/") >= 2


def why(outcome: str, status: WorkloadStatus | None, expires_at: float, now: float) -> str:
    """The reason why a workload was not changed as asked, or not yet; empty: it was."""
    state = "" if status is None else status.state
    if outcome == BEHIND:
        return (
            "an older workload of its ordering key is not over: it runs behind that one, whatever its own time and "
            "priority; `tailrace peek` shows the key, `tailrace find --key KEY` the workloads that have it"
        )
    if outcome == EXPIRES:
        left = max(0.0, expires_at - now)
        return (
            f"nothing was changed: the workload expires {duration_text(round(left))} from now (`expires_after`). "
            "Choose an earlier time, or cancel it and submit it anew"
        )
    if outcome == OUT:
        return (
            f"nothing was changed: the workload is {state or 'out'}, handed out by a tailer. If it fails, it waits "
            "again and can be changed; `tailrace cancel` asks for its end"
        )
    if outcome == ENDED:
        more = "`tailrace dead redrive` runs it again" if state == State.FATAL_FAILURE.label else "submit it anew"
        over = "it was cancelled" if state == SPOOLED else f"it is over ({state or 'ended'})"
        return f"nothing was changed: {over}. To run it again, {more}"
    if outcome == UNKNOWN:
        return "the workload was never submitted here, or ended long ago: `tailrace find` lists all known ones"
    return ""


def not_shown(id: str, status: WorkloadStatus | None) -> str:
    """The reason why a workload cannot be shown."""
    if status is None:
        return f"no workload {id!r:.200} is known: it was never submitted here, or ended long ago"
    if status.state == State.FATAL_FAILURE.label:
        return f"{id} is over ({status.state}): `tailrace dead show {id} --payload` shows it, if its letter is kept"
    return f"{id} is over ({status.state}), and its payload is gone; `tailrace result {id}` shows its result, if kept"


def of_stream(id: str) -> str:
    """The reason why an item of a stream is neither changed nor shown here, with commands for it."""
    tailer = id.partition("/")[0]
    return (
        f"{id!r:.200} is an item of the stream that the tailer {tailer!r:.100} reads, and in no queue: its place in "
        f"the source decides when it runs, and its tailer's file its priority and retry. `tailrace explain {id:.200}` "
        f"shows what it waits for; `tailrace replay` runs past items again; `tailrace dead show {id:.200} --payload` "
        "shows one that will not be tried again, and `tailrace dead redrive` runs it"
    )
