"""Gates that end by themselves: THE rule of when. A gate protects, so it ends late rather than early: a clock that is
ahead for a moment, or at a start, ends none."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.gate import Gate

#: Seconds between two looks at gates that are over by the wall clock alone.
LOOK = 5.0


class GateEnds:
    """The ends of the gates that a gateway knows. A gate is over when its end has come by the wall clock, and either by
    the trusted time as well (stores/trusted_time.py), or it was seen here for the whole time that it was to last.

    Times are seconds; `now` is monotonic.
    """

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}  # by version: when the gate was first seen

    def see(self, gates: Sequence[Gate], now: float) -> None:
        """Notes all gates that there are."""
        self._seen = {gate.version: self._seen.get(gate.version, now) for gate in gates if gate.until}

    def over(self, gates: Sequence[Gate], wall: float, trusted: float, now: float) -> list[Gate]:
        """The gates that are over."""
        return [
            gate
            for gate in gates
            if gate.until and wall >= gate.until and min(gate.until - trusted, self._left(gate, now)) <= 0
        ]

    def wait(self, gates: Sequence[Gate], wall: float, trusted: float, now: float) -> float | None:
        """Seconds after which to look again; None: no gate ends by itself. By the wall clock a gate may be over long
        before it is; then a look now and then tells."""
        ends = [
            max(gate.until - wall, min(gate.until - trusted, self._left(gate, now), LOOK))
            for gate in gates
            if gate.until
        ]
        return min(ends, default=None)

    def _left(self, gate: Gate, now: float) -> float:
        """Seconds that a gate has yet to be seen."""
        return gate.until - gate.since - (now - self._seen.get(gate.version, now))
