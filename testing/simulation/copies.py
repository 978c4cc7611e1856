"""Copies that wait in the delay service, as its streams, their checkpoints and the ledger tell it together: a failed
item is always somewhere from which it goes on.

The streams of the platform's own, rungs and what is due, keep the same promises as the users': a checkpoint never goes
back, never stands beyond what was appended, and passes a copy only when the item has ended or goes on from elsewhere.
Nothing is trimmed that no checkpoint has passed, and a copy that runs is above the checkpoint of what is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from ...delay_service.leadership import SOURCE as MOVERS
from ...model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from ...model.parked import Parked, due_function, due_stream, parked_from
from ...stores.log.batch import decode as decode_batch
from ...tailers.rules.frontier import decode as decode_ahead
from ...tailers.supervisor import DUE
from .journal import Execution, Journal
from .sqlite_disk import Disk

#: Without the notes of the lives of what is read.
_MARKS = "SELECT source, partition, position, ahead FROM checkpoint_marks WHERE source NOT LIKE '@lives.%'"
_BATCHES = "SELECT s.name, b.rowid, b.first, b.count FROM batches AS b JOIN streams AS s ON s.id = b.stream"
_COLUMNS = "SELECT columns FROM batches WHERE rowid = ?"
_STARTS = "SELECT s.name, p.start FROM partitions AS p JOIN streams AS s ON s.id = p.stream WHERE p.start > 0"
_ROW = "SELECT entry FROM ledger WHERE source = ? AND partition = ? AND position = ?"

_entry = msgspec.json.Decoder(LedgerEntry).decode

#: Home of an item: its tailer, the partition, and the position there.
Home = tuple[str, str, int]
#: A stream of the delay service, and a position in it.
Spot = tuple[str, int]


class SettledMark(NamedTuple):
    """A checkpoint: everything below `position` is settled, and so are those in `ahead`."""

    position: int = 0
    ahead: frozenset[int] = frozenset()

    def has(self, position: int) -> bool:
        """Whether it has passed a position."""
        return position < self.position or position in self.ahead


class Copies:
    """The copies of all items. `ended` says of an id whether it was done or buried at some time.

    Invariants: `_waiting` has each copy that no checkpoint has passed, with its n; `_passed` is each checkpoint as it
    was after the last commit, by its stream (a rung, a due stream, or a tailer's own).
    """

    def __init__(self, disk: Disk, journal: Journal, ended: Callable[[str], bool]) -> None:
        self._disk = disk
        self._journal = journal
        self._ended = ended
        self._ends: dict[str, int] = {}
        self._homes: dict[Spot, Home] = {}
        self._waiting: dict[Home, dict[Spot, int]] = {}
        self._passed: dict[str, SettledMark] = {}
        self._marks: list[tuple[str, str, int, bytes]] = []
        journal.begins.append(self._begins)

    # ---- after each commit

    def committed(self, file: str) -> None:
        """Notes copies that were appended, and checks that items whose copies were passed go on from somewhere."""
        if file == "delay":
            self._read()
            self._trimmed()
        elif file == "state":
            marks = self._disk.rows("state", _MARKS)
            if marks != self._marks:
                self._marks = marks
                self._move(marks)

    def _read(self) -> None:
        """Reads the copies that were appended since the last time."""
        for stream, row, first, count in self._disk.rows("delay", _BATCHES):
            if first < self._ends.get(stream, 0):
                continue
            self._ends[stream] = first + count
            ((columns,),) = self._disk.rows("delay", _COLUMNS, (row,))
            passed = self._passed.get(stream, SettledMark())
            for position, copy in enumerate(_copies(columns), first):
                if not passed.has(position):
                    home, spot = (copy.tailer, copy.partition, copy.position), (stream, position)
                    self._homes[spot] = home
                    self._waiting.setdefault(home, {})[spot] = copy.n

    def _trimmed(self) -> None:
        for stream, start in self._disk.rows("delay", _STARTS):
            position = self._passed.get(stream, SettledMark()).position
            if start > position:
                self._journal.wrong(f"trimmed: {stream} begins at {start}, and its checkpoint is at {position}")

    def _move(self, marks: Iterable[tuple[str, str, int, bytes]]) -> None:
        moved: dict[Home, str] = {}
        for source, partition, position, ahead in marks:
            stream = _stream(source, partition)
            before = self._passed.get(stream, SettledMark())
            after = self._passed[stream] = SettledMark(
                position, frozenset(position + index for index, bit in enumerate(decode_ahead(ahead)) if bit)
            )
            if position < before.position:
                self._journal.wrong(f"the checkpoint of {stream} went back from {before.position} to {position}")
            settled = {*range(before.position, position), *(after.ahead - before.ahead)}
            if source in (MOVERS, DUE):
                if max(settled, default=-1) >= self._ends.get(stream, 0):
                    self._journal.wrong(f"beyond: the checkpoint of {stream} is above {self._ends.get(stream, 0)}")
                moved |= {home: stream for home in map(self._leave, [(stream, each) for each in settled]) if home}
            else:
                moved |= {(source, partition, each): stream for each in settled}
        for home, stream in moved.items():
            self._goes_on(home, stream)

    def _leave(self, spot: Spot) -> Home | None:
        """Forgets a copy that was passed. Returns its item's place in its source, unless it was passed before."""
        home = self._homes.pop(spot, None)
        if home is not None:
            del self._waiting[home][spot]
        return home

    def _goes_on(self, home: Home, stream: str) -> None:
        """Checks that an item whose copy was passed has ended, or goes on from something that is still there."""
        id_ = "/".join(map(str, home))
        row = self._row(home)
        if row is None or row.place in (*TERMINAL, LedgerPlace.SUSPECT):
            # A suspect runs from its source (L14), and so does what was put back to before its first failure.
            home_reads = (row is None or row.place is LedgerPlace.SUSPECT) and not self._passed_at_home(home)
            if stream != home[0] and not home_reads and not self._ended(id_):
                self._journal.wrong(f"the checkpoint of {stream} passed {id_}, which is not over and has no row")
        elif not stands(row, self._waiting.get(home, {}).values(), read=not self._passed_at_home(home)):
            self._journal.wrong(
                f"the checkpoint of {stream} passed {id_}, which is {row.place.label}({row.n}), and nothing brings it"
            )

    def _row(self, home: Home) -> LedgerEntry | None:
        rows = self._disk.rows("state", _ROW, home)
        return _entry(rows[0][0]) if rows else None

    def _passed_at_home(self, home: Home) -> bool:
        return self._passed.get(home[0], SettledMark()).has(home[2])

    # ---- runs

    def _begins(self, run: Execution) -> None:
        """Checks that a copy that starts is above the checkpoint of its stream of due items."""
        if "/" not in run.id:
            return
        source, partition, position = run.id.split("/")
        home = (source, partition, int(position))
        row = self._row(home)
        if row is None or row.place is not LedgerPlace.RUNNING or row.fence != run.fence:
            return
        if not any(due_function(stream) is not None for stream, _ in self._waiting.get(home, {})):
            self._journal.wrong(f"started: {run.id} starts in {run.where}, and no copy of it is due and not passed")

    # ---- otherwise

    def restored(self) -> None:
        """Reads the copies again that wait: the files were put back to an older copy."""
        self._ends, self._homes, self._waiting, self._passed, self._marks = {}, {}, {}, {}, []
        for source, partition, position, ahead in self._disk.rows("state", _MARKS):
            bits = frozenset(position + index for index, bit in enumerate(decode_ahead(ahead)) if bit)
            self._passed[_stream(source, partition)] = SettledMark(position, bits)
        self._read()

    def at_rest(self) -> None:
        """Checks that no copy waits, and no checkpoint has gaps."""
        for home, spots in self._waiting.items():
            for stream, position in spots:
                self._journal.wrong(f"left over: a copy of {'/'.join(map(str, home))} in {stream} at {position}")
        for stream, passed in self._passed.items():
            if passed.ahead:
                self._journal.wrong(
                    f"left over: {stream} is passed to {passed.position}, and {len(passed.ahead)} ahead"
                )


def stands(row: LedgerEntry, copies: Iterable[int], *, read: bool) -> bool:
    """Whether an item whose row has not ended goes on. `copies` are the n of those that wait; `read`: whether its own
    source will be read again from its position."""
    if row.place is LedgerPlace.PARKING:
        return read or any(True for _ in copies)  # whoever meets it appends it (L15, L18)
    return any(n >= row.n for n in copies)


def _copies(columns: bytes) -> list[Parked]:
    """Records of a batch, without their payloads."""
    batch = decode_batch(columns)
    sets = [parked_from(headers, b"") for headers in batch.header_sets]
    return [sets[number] for number in batch.header_of or [0] * len(batch.payloads)]


def _stream(source: str, partition: str) -> str:
    if source == MOVERS:
        return partition
    return due_stream(partition) if source == DUE else source
