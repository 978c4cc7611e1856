"""Alerts for operators: THE list. Each alert has a code, the finding, and what to do.

    code          the alert holds while
    waiting       the oldest due item of a priority has waited longer than its service level allows
    attempts      a live item of a priority has spent more attempts than its service level allows
    start_delay   fewer items of a function and priority start within the allowed delay than their objective asks
    accepted      fewer submissions of a function and priority are accepted than their objective asks
    store         the queue's store does not answer
    spool         submissions rest on the gateway's disk, since the store is away; it tells how full the spool is
    spool_refused the store refuses some spooled submissions for good
    refusing      submissions were refused in the last minute because something was full
    peers         connections or calls were refused or ended in the last minute at the gateway's bounds for each peer
    log_held      somebody's open transaction lets the write-ahead log of a database grow
    tailer        a tailer has work and gets nowhere, or has ended
    part          a part failed and was closed, and is open again or will be; or one of its tasks fails and is tried
                  again; or its store was set back to an earlier state
    clogged       a function's circuit breaker is open, because nearly all its items fail
    audit         a tailer's running audit misses positions, or counts some twice
    letters_full  a function has as many dead letters (of a tenant) as are kept, so that what fails stays in its source
    dead_letters  there are more dead letters than some minutes ago

A pause or a gate that an operator set is no alert by itself, but the work that it holds grows old like any other.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...model.alert import Alert, LevelOverview, ObjectiveOverview
from ...model.dead_letter import LetterRoom
from ...model.gate import Gate
from ...model.overview import Overview, TailerOverview
from ...model.reopening import Trouble
from ...model.units import duration_text
from .objectives import START_DELAY, is_missed

CODES = (
    "store",
    "spool",
    "spool_refused",
    "refusing",
    "peers",
    "log_held",
    "tailer",
    "part",
    "clogged",
    "audit",
    "waiting",
    "attempts",
    "start_delay",
    "accepted",
    "letters_full",
    "dead_letters",
)


class SeenBeside(NamedTuple):
    """Facts that an overview does not have.

    store_away        why the queue's store does not answer; empty: it does
    spool_items, spool_bytes  bounds of the spool
    refused, refused_since    the last refusal of a submission, and since when there were some, with no minute without
    new_letters       dead letters of the last minutes
    troubles          failures of the parts beside the gateway
    full_rooms        functions, by tenant, that have as many dead letters as are kept
    ended, ended_since        the last peer that was ended, and since when there were some
    """

    store_away: str = ""
    spool_items: int = 0
    spool_bytes: int = 0
    refused: str = ""
    refused_since: float = 0.0
    new_letters: int = 0
    gates: tuple[Gate, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    ended: str = ""
    ended_since: float = 0.0
    full_rooms: tuple[LetterRoom, ...] = ()


def alerts(overview: Overview, seen: SeenBeside, now: float) -> list[Alert]:
    """All alerts, in the order of CODES. `now` is wall clock seconds; a `since` of 0 is not known yet."""
    found = [
        *_of_the_door(overview, seen, now),
        *(_of_a_log(name, size, readers) for name, (size, readers) in overview.held_logs.items()),
        *(each for tailer in overview.tailers for each in of_a_tailer(tailer, now)),
        *map(_of_a_part, seen.troubles),
        *(each for level in overview.levels for each in _of_a_level(level, seen.gates, now)),
        *(_of_an_objective(each) for each in overview.objectives if is_missed(each)),
    ]
    found += map(_of_a_room, seen.full_rooms)
    if seen.new_letters > 0:
        what = f"{seen.new_letters} new in the last minutes, {overview.dead_letters} in all"
        todo = "see why: tailrace dead list; run them again once the cause is mended: tailrace dead redrive"
        found.append(Alert("dead_letters", "dead letters", 0.0, what, todo))
    return sorted(found, key=lambda each: CODES.index(each.code))


def dated(found: Iterable[Alert], before: Mapping[tuple[str, str], float], now: float) -> list[Alert]:
    """Gives each alert a `since`: its own, else the time when it was first seen. `before`: `since_when` of the answer
    before."""
    return [each if each.since else replace(each, since=before.get((each.code, each.subject), now)) for each in found]


def since_when(found: Iterable[Alert]) -> dict[tuple[str, str], float]:
    """The `since` of each alert by code and subject, for the next call of `dated`."""
    return {(each.code, each.subject): each.since for each in found}


def _of_the_door(overview: Overview, seen: SeenBeside, now: float) -> Iterator[Alert]:
    spool = overview.spool
    if seen.store_away:
        todo = "start it, or mend the way to it; submissions are spooled meanwhile, if this gateway has a spool"
        yield Alert("store", "queue", 0.0, seen.store_away, todo)
    if spool.items > spool.refused:
        full = max(spool.items / max(1, seen.spool_items), spool.size / max(1, seen.spool_bytes))
        what = f"{spool.items} workloads rest on the gateway's disk ({full:.0%} of what it may hold)"
        yield Alert(
            "spool",
            "spool",
            now - spool.age if spool.age else 0.0,
            what + (", it refuses more" if full >= 1 else ""),
            "nothing, it is emptied now" if spool.state == "draining" else "bring the store back before it is full",
        )
    if spool.refused:
        what = f"the store refuses {spool.refused} spooled workloads for good; they are kept with the reasons"
        todo = "see the gateway's log for why, and submit again those that are still wanted"
        yield Alert("spool_refused", "spool", 0.0, what, todo)
    if seen.refused:
        todo = "add workers or pause the flood (tailrace queue shows the backlogs), or raise the bound that it names"
        yield Alert("refusing", "submissions", seen.refused_since, seen.refused, todo)
    if seen.ended:
        todo = "see the gateway's log for the peer; a client must read its answers, else raise `peers` in gateway.yaml"
        yield Alert("peers", "connections", seen.ended_since, seen.ended, todo)


def _of_a_log(name: str, size: int, readers: tuple[str, ...]) -> Alert:
    who = f"open in {', '.join(readers)}" if readers else "no other process is known to have it open"
    what = f"its write-ahead log has {size / 1e6:.0f} MB, and a transaction still reads old pages of it; {who}"
    todo = "end that process, or its transaction (a backup ends by itself); the log is begun anew at once"
    return Alert("log_held", name, 0.0, what, todo)


#: What to do about a tailer, by the cause that its watchdog gives.
_MEND = {
    "failed": "mend what it says, then: tailrace tailer resume {name}",
    "by_hand": "mend what it says; it tries again by itself (at once: tailrace tailer resume {name})",
    "source": "mend the way to its source; it tries again by itself",
    "store": "mend the way to the store; it tries again by itself",
    "scheduler": "start a scheduler that it reaches",
    "starting": "wait for the former owner's lease; if that takes long, see its log",
    "paused": "resume it: tailrace tailer resume {name}",
    "gate": "see the gates: tailrace gate list",
    "no_worker": "start a worker with the function's module",
    "slow": "see the runs: tailrace inspect; add workers, or give the function a timeout",
    "clogged": "see the errors: tailrace explain with the id of an item",
}


def of_a_tailer(tailer: TailerOverview, now: float) -> Iterator[Alert]:
    """The alerts of one tailer. Its state is `clogged` whenever something keeps it from reading on; `since` is the time
    when the circuit breaker of a function opened, or 0 for another cause (a store that is full, no worker)."""
    if tailer.state == "clogged" and tailer.since:
        todo = "mend what its functions need; one item at a time is tried, and the first success closes the breaker"
        yield Alert("clogged", tailer.name, tailer.since, tailer.detail, todo)
    elif tailer.state == "clogged" and tailer.healthy:
        yield Alert("tailer", tailer.name, 0.0, tailer.detail, "mend what it says; it goes on by itself")
    elif not tailer.healthy or tailer.state == "failed":
        todo = _MEND.get(tailer.cause, "see which items are held, and why: tailrace tailer list, tailrace inspect")
        since = now - tailer.idle if tailer.idle else 0.0
        yield Alert("tailer", tailer.name, since, tailer.why or tailer.detail, todo.format(name=tailer.name))
    if tailer.unaccounted:
        what = f"{tailer.unaccounted} positions are missing or counted twice"
        yield Alert("audit", tailer.name, 0.0, what, f"see which: tailrace audit {tailer.name}")


def _of_a_room(room: LetterRoom) -> Alert:
    whose, of = room.function, f"--function {shlex.quote(room.function)}"
    if room.tenant:
        whose, of = f"{whose} (tenant {room.tenant})", f"{of} --tenant {shlex.quote(room.tenant)}"
    what = (
        f"{room.held} dead letters, at most {room.most} are kept (`max_dead_letters` in stores.yaml): what fails for "
        "good now stays in its source"
    )
    todo = (
        f"see why: tailrace dead list {of}; run them again once the cause is mended: tailrace dead redrive {of}; or "
        f"give them up: tailrace dead purge {of}. What waits then goes on by itself"
    )
    return Alert("letters_full", whose, 0.0, what, todo)


def _of_an_objective(one: ObjectiveOverview) -> Alert:
    share = f"{one.observed:.1%} of {one.items} in the last minutes, the objective is {one.target:.4g}"
    if one.objective == START_DELAY:
        what = f"started within {duration_text(one.allowed)} of its due time: {share}"
        todo = f"see what holds it up: tailrace inspect; more workers for {one.function}, or a higher priority"
    else:
        what = f"submissions were accepted: {share}"
        todo = "see why others are refused: in the alerts refusing, store and spool"
    return Alert(one.objective, f"{one.function} ({one.priority})", 0.0, what, todo)


def _of_a_part(trouble: Trouble) -> Alert:
    if trouble.todo:
        todo = trouble.todo
    elif trouble.times:
        todo = "see the log for the error, and report it; the part is opened again by itself, however often"
    else:
        todo = "mend what it says; it goes on by itself"
    return Alert("part", trouble.part, trouble.since, trouble.what, todo)


def _of_a_level(level: LevelOverview, gates: Iterable[Gate], now: float) -> Iterator[Alert]:
    more = f" ({level.beyond} functions are beyond their level)" if level.beyond > 1 else ""
    if level.waited > level.waited_allowed:
        late = level.waited - level.waited_allowed
        what = (
            f"the oldest due workload, of {level.waited_by}, has waited {duration_text(round(level.waited))}, allowed "
            f"are {duration_text(level.waited_allowed)}{more}"
        )
        gate = next((each for each in gates if each.function == level.waited_by), None)
        if gate is not None:
            what += f"; {gate.action} by {gate.who or 'somebody'}: {gate.why or 'no reason given'}"
            todo = f"let it run again if that is over: tailrace gate resume {gate.function}"
        else:
            todo = "see what holds it up: tailrace inspect says which workers run it, what is full and what is frozen"
        yield Alert("waiting", level.priority, now - late, what, todo)
    if level.attempts > level.attempts_allowed:
        what = (
            f"a workload of {level.attempts_by} has spent {level.attempts} attempts, allowed are "
            f"{level.attempts_allowed}{more}"
        )
        todo = f"see why it fails: tailrace find --function {level.attempts_by} --state retriable_failure"
        yield Alert("attempts", level.priority, 0.0, what, todo)
