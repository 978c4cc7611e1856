"""Holds: all that keeps items of one kind from starting now, in the order in which an item meets it (FL9).

Worked out from the core's state when somebody asks. It guesses nothing: of things that are not known here, such as
items at rest in a source, it says so or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model.demand import Cell
from ..model.workload import Kind
from .core import Core
from .roster import RosterFunction
from .rules.explain import SENTENCES, Reason, ends_at, held_by, limit_hold, limit_reason
from .rules.flow import FLOW, Flow
from .rules.gate import PAUSE, sentence
from .rules.limit import Limit
from .rules.placement import limit_of, room_of, slots_of, taken_of
from .rules.reserve import entitled, opportunistic_slots
from .rules.unit_limit import UnitLimit

#: Kinds that are named of those that have a limit's room, the largest first.
NAMED = 3


class Hold(NamedTuple):
    """One reason, with its numbers for people, and when it is expected to end (wall clock; 0: that is not known)."""

    reason: Reason
    detail: str
    ends_at: float = 0.0


def holds(core: Core, kind: Kind, source: str, now: float, wall: float) -> list[Hold]:
    """The holds on an item of a kind from a source ("": not known), first to last; empty: nothing holds it."""
    return list(_holds(core, kind, source, now, wall))


def _holds(core: Core, kind: Kind, source: str, now: float, wall: float) -> Iterator[Hold]:
    for here, reason in ((not core.ready, Reason.NOT_READY), (core.draining, Reason.DRAINING)):
        if here:
            yield Hold(reason, SENTENCES[reason])
    if now < (until := core.limits.rejoining_until) and core.limits.charges.bounds_running:
        yield Hold(Reason.REJOINING, SENTENCES[Reason.REJOINING], wall + until - now)
    if (gate := core.intake.gates.of(kind, source)) is not None:
        yield Hold(Reason.PAUSED if gate.action == PAUSE else Reason.DROPPED, sentence(gate), gate.until)
    function = core.roster.functions.get(kind.function)
    if function is None or function.able is None:
        yield Hold(Reason.NO_WORKER, _no_worker(core, kind.function))
        return
    if (outage := core.outages.closed.get(kind.function)) is not None:
        yield Hold(Reason.OUTAGE, outage.reason, wall + max(0.0, core.outages.clogs[kind.function].next_probe() - now))
    if not core.credits.get(Cell(kind.function, kind.priority)) and core.ready and not core.draining:
        yield Hold(Reason.NO_CREDIT, "no tailer has credit for this function and priority")
    flow = _flow(core, function, kind, now)
    for limit in (*flow.charges, *flow.measured):
        if held_by(flow, limit, now):
            yield Hold(limit_reason(limit), _limit(core, flow, limit, now), _ends(flow, limit, now, wall))
    if flow.closed:
        yield Hold(
            limit_reason(flow.asleep) if flow.asleep is not None else Reason.TURN,
            f"its kind is closed to tailers, since {len(flow.items)} that wait here are enough; the others stay "
            "where they rest",
        )
    pools = function.able.pools
    if (kept := _kept(core, function, flow, now)) is not None:
        yield kept
    if not room_of(pools):
        of = f"{limit_of(pools) - room_of(pools)} of {limit_of(pools)} places are taken"
        yield Hold(Reason.WORKERS_FULL, f"{SENTENCES[Reason.WORKERS_FULL]}: {of}{_neighbours(core, function)}")


def _kept(core: Core, function: RosterFunction, flow: Flow, now: float) -> Hold | None:
    """The hold that keeps empty slots from an item: a ceiling, or reserves that are not lent (FL18)."""
    assert function.able is not None
    pools, limits = function.able.pools, core.limits
    slots, busy = slots_of(pools), taken_of(pools)
    kept = limits.kept(function.able)
    if function.opportunistic and busy >= opportunistic_slots(core.config.opportunistic_ceiling, slots - kept):
        return Hold(Reason.RESERVE, f"it is opportunistic, and {busy} of {slots} slots are busy: others have the rest")
    if kept and busy >= int(slots - kept) and not entitled(flow.reserves_of, now):
        return Hold(Reason.RESERVE, f"{kept:g} of {slots} slots stay empty for reserves that are not lent")
    return None


def _flow(core: Core, function: RosterFunction, kind: Kind, now: float) -> Flow:
    """The flow that an item of the kind waits in, or would."""
    found = function.flows.get(core.limits.charges.kin(kind))
    return found if found is not None else core.limits.unmade(function, kind, now)


def _no_worker(core: Core, name: str) -> str:
    """The hold that nobody runs it, and what is known of it all the same."""
    known = core.roster.specs.get(name)
    if known is None:
        return f"{SENTENCES[Reason.NO_WORKER]}; nobody ever registered {name!r}"
    version = f" (version {known.version})" if known.version else ""
    workers = core.workers.values()
    lack = sorted({f"{worker.name} does not meet {worker.unable[name]}" for worker in workers if name in worker.unable})
    pools = [pool for worker in workers for pool in worker.pools.values() if name in pool.functions and pool.failure]
    lack += sorted({f"{pool.worker.name} cannot load it: {pool.failure}" for pool in pools})
    failing = {pool.worker for pool in pools}
    there = sorted({worker.name for worker in workers if name not in worker.unable and worker not in failing})
    others = f"; {', '.join(lack[:NAMED])}" if lack else ""
    others += f"; workers here that do not: {', '.join(there[:NAMED])}" if there else ""
    return f"{SENTENCES[Reason.NO_WORKER]}; it is registered{version}{others or '; no worker is connected at all'}"


def _limit(core: Core, flow: Flow, limit: Limit, now: float) -> str:
    """The hold of a limit: which one, how full it is, until when, and which functions have it."""
    paying = (
        item[FLOW].kind
        for worker in core.workers.values()
        for ref, item in worker.open.items()
        if ref not in worker.parents and item[FLOW] is not None and _pays(item[FLOW], limit)
    )
    return limit_hold(flow, limit, now) + _held_by(paying)


def _pays(flow: Flow, limit: Limit) -> bool:
    return limit in flow.measured if isinstance(limit, UnitLimit) else limit in flow.charges


def _held_by(kinds: Iterable[Kind]) -> str:
    """The functions whose runs have it, the most first."""
    most = Counter((kind.function, kind.tenant) for kind in kinds).most_common(NAMED)
    named = [f"{count} of {function}{f' for {tenant}' if tenant else ''}" for (function, tenant), count in most]
    return f"; running: {', '.join(named)}" if named else ""


def _ends(flow: Flow, limit: Limit, now: float, wall: float) -> float:
    """Time at which a token comes, or enough of a unit; the end of a run cannot be known."""
    at = ends_at(flow, limit)
    return 0.0 if at is None else wall + max(0.0, at - now)


def _neighbours(core: Core, function: RosterFunction) -> str:
    """The others that wait for the same workers."""
    waiting = [
        (each.waiting, name)
        for name, each in core.roster.functions.items()
        if each is not function and each.able is function.able and each.waiting
    ]
    named = [f"{count} of {name}" for count, name in sorted(waiting, reverse=True)[:NAMED]]
    return f"; beside it wait {', '.join(named)}" if named else ""
