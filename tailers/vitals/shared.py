"""How a tailer of a shared source is: all of its partitions together, by the worst of them."""

from __future__ import annotations

from ..pumps.shared_pump import SharedPump
from ..rules.watchdog import WatchdogFacts
from .pump import facts_of, state_of

#: States from the one that says most to the one that says least.
WORST = ("disconnected", "clogged", "starting", "draining", "paused", "running")


def shared_state(pump: SharedPump) -> tuple[str, str]:
    """The state's name as people see it, and a detail."""
    if pump.source_unreachable:
        return "disconnected", pump.source_unreachable
    if not pump.pumps:
        if pump.paused:
            return "paused", ""
        return "starting", "the group has given no partition to this member (yet)"
    found = {name: state_of(each) for name, each in pump.pumps.items()}
    name, (state, why) = min(found.items(), key=lambda one: (WORST.index(one[1][0]), one[0]))
    if not why or all(other == (state, why) for other in found.values()):
        return state, why
    return state, f"partition {name}: {why}"


def shared_facts(pump: SharedPump, failed: str) -> WatchdogFacts:
    """How it is now. `failed`: why its tailer ended for good, empty while it runs."""
    found = [facts_of(each, "") for _, each in sorted(pump.pumps.items())]

    def first(field: str) -> str:
        return next((text for facts in found if (text := getattr(facts, field))), "")

    return WatchdogFacts(
        completions=pump.counts.completed,
        lag=pump.lag if found else -1,
        in_flight=pump.in_flight,
        held=pump.held,
        oldest=max((facts.oldest for facts in found), default=0.0),
        failed=failed,
        source=pump.source_unreachable or first("source"),
        store=first("store"),
        scheduler=first("scheduler"),
        starting=first("starting") if all(facts.starting for facts in found) else "",
        paused=pump.paused,
        clogged=first("clogged"),
        gate=first("gate"),
        no_worker=first("no_worker"),
        held_because=first("held_because"),
    )
