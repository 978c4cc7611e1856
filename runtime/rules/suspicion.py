"""Suspicion: the ends of the items of an executor process that died (poison-message detection).

An item that ran is a suspect: it is lost and its crash is counted, so it comes back alone. An item that only waited
never started and is handed back. When we killed the process on purpose, we know whose fault it was: the culprit gets
the end that its deed deserves, and its neighbours are lost without suspicion. (A killer that is redelivered for ever,
its counter reset by every redelivery, is the oldest complaint about task queues: celery#1628, sidekiq#4633.)
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from ...model.outcome import Outcome
from ...model.units import size_text
from ...model.workload import Ended

#: Exit code of a process that ended itself because its executor, rather than a function, found no memory.
EXHAUSTED = 71
#: Characters of a progress note that a reason repeats; the whole note stands beside it.
NOTE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ProcessDeath:
    """The death of a process, as its parent that reaped it knows.

    code      its exit code; negative: the signal that ended it
    why       set when it was ended on purpose (its lease's timer, a timeout, a drain …); empty: nobody meant to
    culprits  items that caused it, with their end; only with `why`
    what      what happened to it, in its own last words, where nobody can tell which item caused it
    alone     the process ran one item at a time, so an item that ran is certainly what ended it
    ran       seconds since that item was given to it; 0: it ran several
    peak      most memory that it ever held, bytes, as the kernel counted until it was reaped; 0: not known
    floor     bytes below which a peak tells nothing: the kernel lets a process begin with that of its parent
    bound     bytes its functions could allocate; 0: unbounded
    overdue   the deadline to which its kernel timer was armed was over
    """

    code: int
    why: str = ""
    culprits: Mapping[int, Ended] | None = None
    what: str = ""
    alone: bool = False
    ran: float = 0.0
    peak: int = 0
    floor: int = 0
    bound: int = 0
    overdue: bool = False


def cause(code: int) -> str:
    """An exit code for people: `was killed by SIGSEGV`, `exited with code 3`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def death_reason(death: ProcessDeath, others: int = 0, note: str = "") -> str:
    """The reason that a dead letter shows for a death: cause, age, memory and the last progress note."""
    words = (
        "the process ran out of memory "
        if death.bound and death.code == EXHAUSTED
        else f"the process {death.what or cause(death.code)} "
    )
    words += f"after it ran {death.ran:.3g} s" if death.ran else "while it ran"
    if others:
        words += f", with {others} others running"
    if death.peak:
        words += f", at {'most ' if death.peak <= death.floor else ''}{size_text(death.peak)} of memory"
        words += f" (it may allocate {size_text(death.bound)})" if death.bound else ""
    return f"{words}; last note: {note[:NOTE_LENGTH]}" if note else words


def by_deadline(death: ProcessDeath) -> bool:
    """Whether the kernel's timer ended it: its lease was over. The timer sends SIGKILL, as do the kernel's
    out-of-memory killer and many a person, so a SIGKILL only counts once the timer was due; an ITIMER_REAL sends
    SIGALRM. What rang since the process heard of no renewal is its own doing (silence.py), as `what` says."""
    return not death.what and (death.code == -signal.SIGALRM or (death.code == -signal.SIGKILL and death.overdue))


def explained(death: ProcessDeath) -> str:
    """The reason for which a process was ended on purpose; empty: nobody meant to."""
    return death.why or ("its lease was over" if by_deadline(death) else "")


def verdicts(
    live: Iterable[int],
    running: frozenset[int] | set[int],
    death: ProcessDeath,
    progress: Mapping[int, str],
    waiting: Collection[int] = (),
) -> dict[int, Ended]:
    """The end of each item that was in the process: exactly one for each of `live`. Items that were `waiting` for other
    work had begun, but are no suspects."""
    culprits = death.culprits or {}
    why = explained(death)
    suspects = running.intersection(live)
    ends: dict[int, Ended] = {}
    for item in live:
        note = progress.get(item, "")
        if item in culprits:
            ends[item] = replace(culprits[item], progress=note)
        elif item in waiting:
            how = f"was ended: {why}" if why else cause(death.code)
            ends[item] = Ended(Outcome.LOST, f"its process {how}, while it waited for other work", progress=note)
        elif item not in suspects:
            ends[item] = Ended(Outcome.HELD, "its process died before it started")
        elif why:
            ends[item] = Ended(Outcome.LOST, f"its process was ended: {why}", progress=note)
        else:
            reason = death_reason(death, 0 if death.alone else len(suspects) - 1, note)
            ends[item] = Ended(Outcome.LOST, reason, crashed=True, progress=note)
    return ends
