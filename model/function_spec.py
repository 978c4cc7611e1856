"""The specification of a function, as a worker announces it and the registry keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .priority import DEFAULT_PRIORITY, Priority
from .retry import DEFAULT_RETRY, Retry
from .unit_rate import UnitSource, sources_from_dicts

DEFAULT_POOL = "default"
ISOLATED_POOL = "isolated"
#: Downstreams that one function may name.
MOST_DOWNSTREAMS = 16


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A registered function. `timeout` is in seconds, None for no limit (a heartbeat keeps a long run alive).

    owner      who to ask about it
    results    whether what it returns is kept
    arguments  the JSON Schema of its arguments, as text; empty: any payload may fit
    downstreams  what it calls that must not be overloaded, by name: each may have limits of its own
    units      where the estimates of its items come from, of units with a rate of their own
    requires   what a worker must be to run it, as labels say it: `gpu`, `python>=3.12`
    former     those of the version before, of which workers may still run: the front door takes what fits either
    """

    name: str
    version: str = ""
    priority: Priority = DEFAULT_PRIORITY
    retry: Retry = DEFAULT_RETRY
    timeout: float | None = None
    pool: str = DEFAULT_POOL
    isolation: str = "shared"  # shared | process
    description: str = ""
    owner: str = ""
    results: bool = True
    arguments: str = ""
    former: tuple[str, ...] = ()
    downstreams: tuple[str, ...] = ()
    units: tuple[UnitSource, ...] = ()
    requires: tuple[str, ...] = ()


def spec_to_dict(spec: FunctionSpec) -> dict[str, Any]:
    """Plain data for JSON, which the registry stores and the wire carries beside the name."""
    retry = spec.retry
    return {
        "name": spec.name,
        "version": spec.version,
        "priority": spec.priority.label,
        "timeout": spec.timeout,
        "pool": spec.pool,
        "isolation": spec.isolation,
        "description": spec.description,
        "owner": spec.owner,
        "results": spec.results,
        "arguments": spec.arguments,
        "former": list(spec.former),
        "downstreams": list(spec.downstreams),
        "units": [asdict(each) for each in spec.units],
        "requires": list(spec.requires),
        "retry": {name: getattr(retry, name) for name in Retry.__slots__},
    }


def spec_from_dict(data: dict[str, Any]) -> FunctionSpec:
    """The inverse of `spec_to_dict`."""
    retry = dict(data["retry"])
    retry["delays"] = tuple(retry["delays"])
    return FunctionSpec(
        name=data["name"],
        version=data["version"],
        priority=Priority.stored(data["priority"]),
        retry=Retry(**retry),
        timeout=data["timeout"],
        pool=data["pool"],
        isolation=data["isolation"],
        description=data["description"],
        owner=data["owner"],
        results=data["results"],
        arguments=data["arguments"],
        former=tuple(data["former"]),
        downstreams=tuple(data.get("downstreams", ())),
        units=sources_from_dicts(data.get("units", ())),
        requires=tuple(data.get("requires", ())),
    )
