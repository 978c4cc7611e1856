"""Gates: an operator pauses or drops a function, a collection of it, a tenant, a downstream or a source (FL17).

The more specific gate decides: a collection's own gate goes before its function's, so that one collection of a paused
function can be dropped, and one collection of a dropped function be spared. Between gates of which neither is more
specific, pause goes before drop: items at rest can still be dropped later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...model.demand import Closed, more_specific
from ...model.gate import Gate, GateKey
from ...model.workload import Kind

PAUSE = "pause"
DROP = "drop"


def calls_nothing(function: str) -> tuple[str, ...]:
    """The downstreams of a function that names none."""
    return ()


class Gates:
    """The gates that are set. Invariant: at most one gate for each key; `resume` is the absence of one.

    closed       what they close to all sessions; what a source's gate closes is told to the sessions of that source
    dropped      the functions of which a gate drops all that no other gate pauses
    sources      the gates of sources, by source
    downstreams  whether any stands before a downstream, so that it matters which functions call it
    """

    __slots__ = ("_calls", "_gates", "closed", "downstreams", "dropped", "sources")

    def __init__(
        self,
        gates: Iterable[Gate] = (),
        functions: Iterable[str] = (),
        calls: Callable[[str], tuple[str, ...]] = calls_nothing,
    ) -> None:
        self._gates = {gate.key: gate for gate in gates if gate.action in (PAUSE, DROP)}
        self._calls = calls
        self.sources = {gate.source: gate for gate in self._gates.values() if gate.source}
        self.downstreams = any(gate.downstream for gate in self._gates.values())
        cells = [
            (gate, Closed(function, gate.collection, gate.tenant, sentence(gate), gate.action == DROP))
            for gate in self._gates.values()
            if not gate.source
            for function in self._functions(gate, functions)
        ]
        paused = [(gate, cell) for gate, cell in cells if not cell.drop] if self.downstreams else []
        self.closed: frozenset[Closed] = frozenset(
            cell for gate, cell in cells if not cell.drop or _decides(gate, cell, paused)
        )
        self.dropped = frozenset(cell.function for cell in self.closed if cell.drop and cell.which[1:] == (None, None))

    def of(self, kind: Kind, source: str = "") -> Gate | None:
        """The gate that stands before items of this kind from this source; None: the way is open."""
        gates = self._gates
        if not gates:
            return None
        return decisive([gate for key in set(self._keys(kind, source)) if (gate := gates.get(key)) is not None])

    def again(self, functions: Iterable[str]) -> Gates:
        """Returns the same gates for other functions that call the downstreams they stand before."""
        return Gates(self._gates.values(), functions, self._calls)

    def _keys(self, kind: Kind, source: str) -> Iterator[GateKey]:
        function, collection, tenant = kind.function, kind.collection, kind.tenant
        yield (function, collection, tenant, "", "")
        yield (function, collection, "", "", "")
        yield (function, "", tenant, "", "")
        yield (function, "", "", "", "")
        yield ("", "", tenant, "", "")
        yield ("", "", "", "", source)
        for downstream in self._calls(function) if self.downstreams else ():
            yield ("", "", tenant, downstream, "")
            yield ("", "", "", downstream, "")

    def _functions(self, gate: Gate, functions: Iterable[str]) -> list[str]:
        """The functions that a gate closes: those that call its downstream, its own, or every one."""
        if not gate.downstream:
            return [gate.function]
        return [function for function in functions if gate.downstream in self._calls(function)]


def decisive(gates: Iterable[Gate]) -> Gate | None:
    """The gate that decides among those that stand before the same item."""
    standing = list(gates)
    nearest = [gate for gate in standing if not any(_more_specific(other, gate) for other in standing)]
    return min(nearest, key=lambda gate: (gate.action != PAUSE, gate.key), default=None)


def _decides(gate: Gate, dropped: Closed, paused: Iterable[tuple[Gate, Closed]]) -> bool:
    """Whether a tailer may take what is dropped for more specific than all that is paused and looks less so to it: it
    does not know which gates are of downstreams."""
    return all(_more_specific(gate, other) for other, cell in paused if more_specific(dropped.which, cell.which))


def _more_specific(gate: Gate, other: Gate) -> bool:
    """Whether a gate names all that another one names, and more."""
    pairs = list(zip(gate.key, other.key, strict=True))
    return gate.key != other.key and all(theirs in ("", ours) for ours, theirs in pairs)


def sentence(gate: Gate) -> str:
    """The sentence on a gate for people: its action, who set it and why."""
    done = "paused" if gate.action == PAUSE else "dropped"
    by = f" by {gate.who}" if gate.who else ""
    why = f": {gate.why}" if gate.why else ""
    return f"{gate.what} is {done}{by}{why}"
