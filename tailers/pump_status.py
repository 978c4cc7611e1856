"""Status of a pump: one value for people, for the watchdog, and for the code that drains or moves its tailer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .rules.watchdog import WatchdogFacts

#: States from the one that says most to the one that says least.
WORST = ("disconnected", "clogged", "starting", "draining", "paused", "running")


class PumpStatus(NamedTuple):
    """The state of a pump now.

    state        the state for people, one of `WORST`
    detail       the reason; empty where there is nothing to say
    facts        input of the watchdog, with the numbers of items that are out and held
    lag          items or positions by which it is behind its source; -1: not known yet
    unaccounted  items that the running audit misses or counts twice; 0 unless something is wrong
    classes      the running audit: number of positions in each class
    since        since when one of its functions is clogged (its circuit breaker is open), wall clock; 0: none is
    """

    state: str
    detail: str
    facts: WatchdogFacts
    lag: int = -1
    unaccounted: int = 0
    classes: Mapping[str, int] = MappingProxyType({})
    since: float = 0.0


def state_of(states: Iterable[tuple[str, str | bool]], otherwise: str) -> tuple[str, str]:
    """The first state that holds, with its reason; if none does, "running" with `otherwise` as the reason."""
    name, why = next(((name, why) for name, why in states if why), ("running", otherwise))
    return name, why if isinstance(why, str) else ""


def worst_of(partitions: Mapping[str, PumpStatus], completions: int, paused: bool, source: str) -> PumpStatus:
    """The status of a shared source: the worst of its partitions, and their sums. `completions` counts all partitions
    that there ever were; `source`: why the source cannot be reached."""
    parts = [partitions[name] for name in sorted(partitions)]
    facts = [part.facts for part in parts]

    def first(field: str) -> str:
        return next((text for each in facts if (text := getattr(each, field))), "")

    state, detail = _worst(partitions, paused, source)
    lag = sum(part.lag for part in parts) if all(part.lag >= 0 for part in parts) else -1
    classes: Counter[str] = Counter()
    for part in parts:
        classes.update(part.classes)
    return PumpStatus(
        state,
        detail,
        WatchdogFacts(
            completions=completions,
            lag=lag if parts else -1,
            in_flight=sum(each.in_flight for each in facts),
            held=sum(each.held for each in facts),
            oldest=max((each.oldest for each in facts), default=0.0),
            source=source or first("source"),
            store=first("store"),
            scheduler=first("scheduler"),
            starting=first("starting") if all(each.starting for each in facts) else "",
            paused=paused,
            clogged=first("clogged"),
            gate=first("gate"),
            no_worker=first("no_worker"),
            held_because=first("held_because"),
        ),
        lag=lag,
        unaccounted=sum(part.unaccounted for part in parts),
        classes=dict(classes),
        since=min((part.since for part in parts if part.since), default=0.0),
    )


def _worst(partitions: Mapping[str, PumpStatus], paused: bool, source: str) -> tuple[str, str]:
    if source:
        return "disconnected", source
    if not partitions:
        return ("paused", "") if paused else ("starting", "the group has given no partition to this member (yet)")
    found = {name: (each.state, each.detail) for name, each in partitions.items()}
    name, (state, why) = min(found.items(), key=lambda one: (WORST.index(one[1][0]), one[0]))
    if not why or all(other == (state, why) for other in found.values()):
        return state, why
    return state, f"partition {name}: {why}"
