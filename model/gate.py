"""Gates: subjects that operators pause or drop, until they resume them or until the gate ends by itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .name import EXPECTED, NAME_LENGTH, is_name

#: Actions of a gate; `resume` removes it.
ACTIONS = ("pause", "drop", "resume")
#: Gates in all.
MOST_GATES = 10_000
#: The fields of a gate that name what it stands before.
GATED = ("function", "collection", "tenant", "downstream", "source")

#: Fields that name the subject of a gate: function, collection, tenant, downstream, source.
GateKey = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate of a function, a collection of it, a tenant, a downstream or a source; or of a function's or a
    downstream's tenant. `action` is pause or drop. `until` is the instant at which it ends (wall clock, seconds; 0: it
    does not). `version` is that of the control store which it made; two gates that differ in nothing else are the
    same. `right`: the right with which it was set, as text, which only the gateway writes; empty: it was not noted."""

    function: str
    collection: str
    action: str
    who: str = ""
    why: str = ""
    since: float = 0.0
    version: int = field(default=0, compare=False)
    tenant: str = ""
    downstream: str = ""
    source: str = ""
    until: float = 0.0
    right: str = ""

    @property
    def key(self) -> GateKey:
        """The subject that the gate closes, as a tuple; a subject has one gate at most."""
        return (self.function, self.collection, self.tenant, self.downstream, self.source)

    @property
    def what(self) -> str:
        """The subject that the gate closes, for people."""
        if self.function and self.collection and not self.tenant:
            return f"collection {self.collection!r} of {self.function}"
        if self.function and not any(self.key[1:]):
            return self.function
        named = [f"{name} {value}" for name, value in zip(GATED, self.key, strict=True) if value]
        return " × ".join(named) or "gate without a name"

    def fault(self) -> str:  # noqa: PLR0911 - one return per fault
        """The fault in this gate as a sentence; empty: there is none."""
        if self.action not in ACTIONS:
            return f"action is {self.action!r:.50}: expected one of {', '.join(ACTIONS)}"
        for what, name in zip(GATED, self.key, strict=True):
            if name and not is_name(name):
                return f"{what} {name[:NAME_LENGTH]!r} is not a name: {EXPECTED}"
        if not any(self.key):
            return "nothing is behind it: give a function, a tenant, a downstream or a source"
        if self.collection and not self.function:
            return "`collection` is given without `function`: a collection is part of a function"
        if self.downstream and self.function:
            return "a gate is of a function or of a downstream, not of both: give two gates"
        if self.source and any(self.key[:-1]):
            return "a gate is of a source or of workloads from it, not of both: give two gates"
        if not math.isfinite(self.until) or self.until < 0:
            return f"until is {self.until}: expected an instant, or 0 for no end"
        return ""


def gate_to_text(gate: Gate) -> str:
    """A gate as it rests in a control store, but for its version: what it says, and nothing that it leaves open."""
    said = {name: getattr(gate, name) for name in Gate.__slots__ if name != "version"}
    return json.dumps({name: value for name, value in said.items() if value})


def gate_from_text(text: str | bytes, version: int) -> Gate:
    """The inverse of `gate_to_text`; what a later version says beside it is left out."""
    data: Mapping[str, Any] = json.loads(text)
    known = {name: value for name, value in data.items() if name in Gate.__slots__}
    return Gate(**({"function": "", "collection": "", "action": "pause"} | known | {"version": version}))


def gate_name(gate: Gate) -> str:
    """The subject of a gate as one text: the key under which control stores keep it."""
    return json.dumps(gate.key, ensure_ascii=False, separators=(",", ":"))
