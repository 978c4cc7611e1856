"""An assigned flight on its way into executors, cut into slices without touching an item."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.workload import INDEX_BITS, Flight, Kind
from .executors import KIND_TABLE, ExecutorProcess
from .frames import SESSION_BITS, Assign, extra_row


@dataclass(slots=True)
class AssignedFlight:
    """A flight of one session with its fences. Item i has the key `base + i`."""

    session: int
    flight: Flight
    fences: list[int]

    @property
    def base(self) -> int:
        """Key of the first item."""
        return self.session << SESSION_BITS | self.flight.number << INDEX_BITS

    def send(self, executor: ExecutorProcess, start: int, stop: int, deadline: float) -> None:
        """Puts items [start, stop) into an executor under an absolute deadline."""
        flight = self.flight
        first = self.base + start
        new_kinds, numbers = _number(executor.kinds, flight.kinds[start:stop])
        executor.covered += 1
        executor.live.update(range(first, first + stop - start))
        executor.timer = min(executor.timer or deadline, deadline)
        executor.send(
            Assign(
                executor.covered,
                deadline,
                first,
                new_kinds,
                numbers,
                flight.ids[start:stop],
                flight.payloads[start:stop],
                flight.attempts[start:stop],
                self.fences[start:stop],
                {index - start: extra_row(extra) for index, extra in flight.extras.items() if start <= index < stop}
                if flight.extras
                else {},
                flight.wants_result,
                any(extra.expires_at for extra in flight.extras.values()),
            )
        )


#: One item that waits in the supervisor: its batch and its index.
Row = tuple[AssignedFlight, int]


def row_key(row: Row) -> int:
    """Key of a waiting item."""
    return row[0].base + row[1]


def _number(table: dict[Kind, int], kinds: list[Kind]) -> tuple[list[tuple[int, str, int, str, str]], list[int]]:
    """The kinds that an executor must be told first, and the number in its table of each of these kinds."""
    try:
        return [], [table[kind] for kind in kinds]
    except KeyError:
        fresh = [kind for kind in dict.fromkeys(kinds) if kind not in table]
        if len(table) + len(fresh) > KIND_TABLE:
            table.clear()  # numbers are given out again; the executor takes the newest meaning
            fresh = list(dict.fromkeys(kinds))
        told = []
        for kind in fresh:
            table[kind] = number = len(table)
            told.append((number, *kind))
        return told, [table[kind] for kind in kinds]
