"""Gates: an operator pauses or drops a function, or one collection of it.

The more specific gate decides: a collection's own gate goes before its function's, so that one collection of a paused
function can be dropped, and one collection of a dropped function be spared.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model.demand import Closed
from ...model.limits import Gate
from ...model.workload import Kind

PAUSE = "pause"
DROP = "drop"


class Gates:
    """The gates that are set. Invariant: at most one gate per ⟨function, collection⟩; `resume` is the absence of
    one."""

    __slots__ = ("_gates", "closed")

    def __init__(self, gates: Iterable[Gate] = ()) -> None:
        self._gates = {(gate.function, gate.collection): gate for gate in gates if gate.action in (PAUSE, DROP)}
        self.closed: frozenset[Closed] = frozenset(
            Closed(gate.function, gate.collection, "", sentence(gate), gate.action == DROP)
            for gate in self._gates.values()
        )

    def of(self, kind: Kind) -> Gate | None:
        """The gate that stands before items of this kind; None: the way is open."""
        gates = self._gates
        if not gates:
            return None
        return gates.get((kind.function, kind.collection)) or gates.get((kind.function, ""))


def sentence(gate: Gate) -> str:
    """What a gate says for people: its action, who set it and why."""
    what = gate.function if not gate.collection else f"collection {gate.collection!r} of {gate.function}"
    done = "paused" if gate.action == PAUSE else "dropped"
    by = f" by {gate.who}" if gate.who else ""
    why = f": {gate.why}" if gate.why else ""
    return f"{what} is {done}{by}{why}"
