"""Dead letters of items of a stream or a queue that are tried no more, or that can neither go on nor wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...model.dead_letter import IN_LINE, JOB_ITEM, DeadLetter
from ...model.demand import Cell
from ...model.ledger import LedgerEntry
from ...model.outcome import Outcome
from ...model.parked import Parked
from ...model.workload import NO_EXTRA, Ended, Extra, Kind
from ...sdk.source import StreamBatch
from ..hand_out import HandOut
from ..ledger.rows import RowHome
from ..mapping.mapping import Mapped
from ..rules.letter_waits import RoomName
from ..rules.settlement import Action, Settlement
from .departure import OUTCOMES, EndedItem


def letter_of(
    item: EndedItem, tailer: str, home: RowHome | None, settlement: Settlement, now: float, *, in_line: bool
) -> DeadLetter:
    """The dead letter of an item that first came from `tailer`, at `now`, wall clock. `home` is the place of its row;
    `in_line`: redriven, it waits in its line there again. A record's own header that says so is not believed."""
    headers = tuple([each for each in item.headers if each[0] != IN_LINE[0]])
    return DeadLetter(
        id=item.id,
        tailer=tailer,
        kind=item.kind,
        payload=item.payload,
        outcome=OUTCOMES[item.ended.outcome],
        reason=settlement.reason,
        attempts=settlement.failed,
        crashes=settlement.crashes,
        first_seen=item.first_seen,
        died_at=now,
        key=item.extra.key,
        headers=(*headers, IN_LINE) if in_line else headers,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=-1 if home is None else home.position,
        tries=item.tries(settlement.reason, now),
    )


def letter_of_queued(
    out: HandOut, index: int, tailer: str, settlement: Settlement, ended: Ended, now: float
) -> DeadLetter:
    """The dead letter of an item of a queue, at `now`, wall clock. It has no tries: the queue knows how the attempts
    before the last one went. A job's item has a header that says so."""
    flight = out.flight
    extra = flight.extras.get(index, NO_EXTRA)
    return DeadLetter(
        id=flight.ids[index],
        tailer=tailer,
        kind=flight.kinds[index],
        payload=flight.payloads[index],
        outcome=OUTCOMES[ended.outcome],
        reason=settlement.reason,
        attempts=settlement.failed,
        crashes=settlement.crashes,
        first_seen=out.pushed_at,
        died_at=now,
        key=extra.key,
        headers=(*extra.headers, JOB_ITEM) if index in out.place.jobs else extra.headers,
        progress=ended.progress,
    )


def letter_of_unfit(
    out: HandOut, index: int, payload: bytes, ended: Ended, tailer: str, why: str, now: float
) -> DeadLetter:
    """The dead letter of an item of a job that returned well, and of whose result no other item can be made. Its
    hand-out has let go of the `payload`."""
    flight = out.flight
    extra = flight.extras.get(index, NO_EXTRA)
    settlement = Settlement(Action.DEAD, 0.0, flight.attempts[index] - 1, extra.crashes, 0, why)
    end = Ended(Outcome.FATAL, why, progress=ended.progress)
    return replace(letter_of_queued(out, index, tailer, settlement, end, now), payload=payload)


def unparkable(item: Parked, home: RowHome | None, why: str, now: float, row: LedgerEntry | None) -> DeadLetter:
    """The dead letter of an item that the delay service refuses for good. `home` names its `row` in the ledger; `now`:
    wall clock."""
    return DeadLetter(
        id=item.id,
        tailer=item.tailer,
        kind=item.kind,
        payload=item.payload,
        outcome=Outcome.RETRY.name.lower(),
        reason=f"{item.reason} (cannot be parked: {why})",
        attempts=item.attempt - 1,
        crashes=item.crashes,
        first_seen=item.first_seen,
        died_at=now,
        key=item.key,
        headers=item.headers,
        progress=item.progress,
        partition="" if home is None else home.partition,
        position=-1 if home is None else home.position,
        tries=() if row is None else row.tries,
    )


def room_of(kind: Kind) -> RoomName:
    """The room of the letters of a kind."""
    return kind.function, kind.tenant


# Letters that were redriven in their stream, as its items again.


def batch_of(partition: str, letters: Sequence[DeadLetter]) -> StreamBatch:
    """Letters as records of their partition."""
    return StreamBatch(
        partition,
        [letter.position for letter in letters],
        [letter.died_at for letter in letters],
        [letter.key for letter in letters],
        [letter.headers for letter in letters],
        [letter.payload for letter in letters],
    )


def put_letter(mapped: Mapped, index: int, letter: DeadLetter, kind: Kind) -> None:
    """Sets an item as its letter has it, whatever was mapped of its record. It has no deadline any more."""
    headers = tuple([each for each in letter.headers if each != IN_LINE])
    mapped.kinds[index], mapped.cells[index] = kind, Cell(kind.function, kind.priority)
    mapped.ids[index], mapped.headers[index] = letter.id, headers
    mapped.extras[index] = Extra(letter.key, headers)
