"""What becomes of the items of an executor process that died.

What ran is a suspect: it is lost and its crash is counted, so it comes back alone. What only waited never started and
is handed back. When we killed the process on purpose, we know whose fault it was: the culprit gets the end that its
deed deserves, and its neighbours are lost without suspicion. (A killer that is redelivered for ever, its counter reset
by every redelivery, is the oldest complaint about task queues: celery#1628, sidekiq#4633.)
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...sdk.model.outcome import Outcome
from ...sdk.model.workload import Ended


@dataclass(frozen=True, slots=True)
class Death:
    """How a process died, as its parent that reaped it knows.

    code      its exit code; negative: the signal that ended it
    why       set when it was ended on purpose (its lease's timer, a timeout, a drain …); empty: nobody meant to
    culprits  items whose doing it was, with their end; only with `why`
    alone     the process ran one item at a time, so whatever ran is certainly what ended it
    """

    code: int
    why: str = ""
    culprits: Mapping[int, Ended] | None = None
    alone: bool = False


def cause(code: int) -> str:
    """An exit code for people: `was killed by SIGSEGV`, `exited with code 3`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def by_deadline(code: int) -> bool:
    """Whether the kernel's timer ended it: its lease was over."""
    return code == -signal.SIGALRM


def verdicts(
    live: Iterable[int], running: frozenset[int] | set[int], death: Death, progress: Mapping[int, str]
) -> dict[int, Ended]:
    """The end of each item that was in the process: exactly one for each of `live`."""
    culprits = death.culprits or {}
    why = death.why or ("its lease was over" if by_deadline(death.code) else "")
    suspects = running.intersection(live)
    ends: dict[int, Ended] = {}
    for item in live:
        note = progress.get(item, "")
        if item in culprits:
            ends[item] = replace(culprits[item], progress=note)
        elif item not in suspects:
            ends[item] = Ended(Outcome.HELD, "its process died before it started")
        elif why:
            ends[item] = Ended(Outcome.LOST, f"its process was ended: {why}", progress=note)
        else:
            certain = "" if death.alone or len(suspects) == 1 else f", with {len(suspects) - 1} others running"
            ends[item] = Ended(
                Outcome.LOST, f"the process {cause(death.code)} while it ran{certain}", crashed=True, progress=note
            )
    return ends
