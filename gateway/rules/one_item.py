"""The words of a refusal to look at or change one workload: what it is, and what can be done instead."""

from __future__ import annotations

from ...model.claim import State
from ...model.one_item import BEHIND, ENDED, EXPIRES, OUT, UNKNOWN
from ...model.status import SPOOLED, WorkloadStatus
from ...model.units import duration_text


def is_of_stream(id: str) -> bool:
    """Whether an id names the item of a stream: TAILER/PARTITION/POSITION."""
    return id.count("/") >= 2


def why(outcome: str, status: WorkloadStatus | None, expires_at: float, now: float) -> str:
    """Why a wish was not fulfilled, or not yet. Empty: it was."""
    state = "" if status is None else status.state
    if outcome == BEHIND:
        return (
            "an older workload of its ordering key is not over: it runs behind that one, whatever its own time and "
            "priority; `tailrace peek` tells the key, `tailrace find --key KEY` what has it"
        )
    if outcome == EXPIRES:
        left = max(0.0, expires_at - now)
        return (
            f"nothing was changed: it is not started any more {duration_text(round(left))} from now "
            "(`expires_after`). Choose an earlier time, or cancel it and submit it anew"
        )
    if outcome == OUT:
        return (
            f"nothing was changed: it is {state or 'out'}, which is to say that a tailer has handed it out. If it "
            "fails, it waits again and can be changed; `tailrace cancel` asks for its end"
        )
    if outcome == ENDED:
        more = "`tailrace dead redrive` runs it again" if state == State.FATAL_FAILURE.label else "submit it anew"
        over = "it was cancelled" if state == SPOOLED else f"it is over ({state or 'ended'})"
        return f"nothing was changed: {over}. To run it again, {more}"
    if outcome == UNKNOWN:
        return "it was never submitted here, or ended long ago: `tailrace find` lists what the queue knows"
    return ""


def not_shown(id: str, status: WorkloadStatus | None) -> str:
    """Why nothing can be shown of a workload."""
    if status is None:
        return f"no workload {id!r:.200} is known: it was never submitted here, or ended long ago"
    if status.state == State.FATAL_FAILURE.label:
        return f"{id} is over ({status.state}): `tailrace dead show {id} --payload` shows it, if its letter is kept"
    return f"{id} is over ({status.state}), and its payload went with its end; `tailrace result {id}` has what is kept"


def of_stream(id: str) -> str:
    """Why an item of a stream is neither changed nor shown here."""
    tailer = id.partition("/")[0]
    return (
        f"{id!r:.200} is an item of the stream that the tailer {tailer!r:.100} reads, and in no queue: it rests in its "
        f"source, its place there says when it runs, and its tailer's file its priority and its retries. What it waits "
        f"for says `tailrace explain {id:.200}`; `tailrace replay` runs past ones again; one that will not be tried "
        f"again is shown by `tailrace dead show {id:.200} --payload`, and run by `tailrace dead redrive`"
    )
