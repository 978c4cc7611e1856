"""The scenarios of `tailrace bench`: the function of each, its usual size, and the engine on which it runs when none is
named.

Each is imported when it runs: its engines need their extras.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..model.errors import InvalidRequest
from .figures import Figures, Progress

#: A scenario's function: it runs in a folder, has a size, and tells its progress.
Scenario = Callable[[Path, float, Progress], Coroutine[Any, Any, Figures]]


class Form(NamedTuple):
    """One scenario. `where`: module:function, of a folder, a size and `progress`. `unit`: int where the size counts
    items or cuts, float where it is seconds. `engine`: the usual one; empty: it has one alone. `in_all`: `all` runs it
    too, which leaves out failing functions, orders, one rule alone and long runs. `clients`: it takes a `client` of
    Kafka's."""

    where: str
    size: float
    unit: type[int] | type[float] = int
    engine: str = ""
    in_all: bool = False
    clients: bool = False


FORMS = {
    "stream": Form("queue_engines:stream_on", 600_000, engine="sqlite", in_all=True),
    "queue": Form("queue_engines:queue_on", 300_000, engine="sqlite", in_all=True),
    "latency": Form("queue_engines:latency_on", 10, float, engine="sqlite", in_all=True),
    "memory": Form("scenarios:memory", 1_000_000, in_all=True),
    "idle": Form("scenarios:idle", 10, float, in_all=True),
    "submit": Form("queue_engines:submit_on", 30_000, engine="sqlite"),
    "bulk": Form("queue_engines:bulk_on", 20, float, engine="sqlite"),
    "due": Form("due:due", 30, float, engine="sqlite"),
    "backlog": Form("backlog:backlog", 10_000_000, engine="sqlite"),
    "kinds": Form("kinds:kinds", 100_000, engine="sqlite"),
    "claims": Form("claims:claims", 1_000_000, engine="sqlite"),
    "power_cut": Form("power_cut:power_cut", 5, engine="redis"),
    "plateau": Form("plateau:plateau", 10_000_000, engine="sqlite"),
    "store_down": Form("queue_engines:store_down_on", 12_000, engine="postgres"),
    "outage": Form("failures:outage", 60, float),
    "poison": Form("failures:poison", 300_000),
    "order": Form("failures:order", 100_000),
    "delay": Form("delay:delay", 200_000, engine="sqlite", clients=True),
    "objects": Form("objects:objects", 400_000),
    "redis_stream": Form("redis_stream:redis_stream", 300_000),
    "outbox": Form("outbox:outbox", 200_000, engine="sqlite"),
    "limits": Form("limits:limits", 100_096),
    "frontier": Form("failures:frontier", 1_000_000),
    "downstream": Form("downstream:downstream", 25, float),
    "jobs": Form("jobs:jobs", 100_000, engine="sqlite"),
    "trees": Form("trees:trees", 1_000_000, engine="sqlite"),
    "beside_tree": Form("beside_tree:beside_tree", 1_000_000, engine="sqlite"),
    "neighbours": Form("neighbours:neighbours", 10, float),
}
#: Scenarios that `all` runs.
IN_ALL = [name for name, form in FORMS.items() if form.in_all]
#: Scenarios that need a broker, or may.
KAFKA, RIVALS = "kafka", "rivals"
#: All scenarios that measure.
NAMES = (*FORMS, KAFKA, RIVALS)
#: Scenarios that break the platform on purpose.
FAULTS = ("faults", "restarts", "kafka_faults", "redis_stream_faults", "host_faults")


def names() -> str:
    """Names of all scenarios, for people."""
    others = [name for name in NAMES if name not in IN_ALL]
    return f"{', '.join(IN_ALL)}; all of these; {', '.join(others)}; {', '.join(FAULTS)}."


def on_engine(name: str, engine: str, client: str) -> Scenario:
    """A scenario, on the engine that was asked for; empty: its usual one. Raises InvalidRequest where it has none."""
    form = FORMS[name]
    if engine and not form.engine:
        known = ", ".join(name for name, each in FORMS.items() if each.engine)
        raise InvalidRequest(f"--engine is for the scenarios {known}, not for {name}")
    given = {"engine": engine or form.engine} if form.engine else {}
    given |= {"client": client} if form.clients else {}

    def run(folder: Path, size: float, progress: Progress) -> Coroutine[Any, Any, Figures]:
        module, _, function = form.where.partition(":")
        scenario = getattr(import_module(f".{module}", __package__), function)
        answer: Coroutine[Any, Any, Figures] = scenario(folder, form.unit(size), progress=progress, **given)
        return answer

    return run
