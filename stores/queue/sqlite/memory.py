"""Memory of the queue's writer, which spares it its tables: counts, kinds, bounds on what is due, and the claims.

All of it can be read again from the tables (`reload`), which is what happens when the file is opened and after a
rollback. Only the writer thread changes it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from ....model.claim import State
from ....model.height import Height
from ...sqlite.identity import identity
from ..ids import Ids
from .dedupe import stems
from .heads import Heads
from .rows import BLOCKED, ID, KIND, Row, SqliteKinds, json_text

#: Rows of `tasks` by state, in the order of State.
SUMS = ", ".join(f"coalesce(sum(state = {int(state)}), 0)" for state in State)


class ClaimPart:
    """The items of one claim that share a lease: its row's number, the lease's end in µs of the monotonic clock, and
    what is still out."""

    __slots__ = ("number", "out", "until")

    def __init__(self, number: int, until: int, out: set[int]) -> None:
        self.number = number
        self.until = until
        self.out = out


class RowCount:
    """A count of all rows that is under way (tally.py): it has looked at rows up to `at`, of which the retention
    removed `behind` since. `begins_again`: what it compares with was read anew."""

    __slots__ = ("at", "begins_again", "behind")

    def __init__(self) -> None:
        self.at = -1
        self.behind = 0
        self.begins_again = False

    def gone(self, ids: Iterable[int]) -> None:
        """The retention removed these."""
        self.behind += sum(1 for each in ids if each <= self.at)


class Fresh:
    """Items submitted just now of kinds of which nothing else is due: rows, and payloads by id. True for as long as
    nothing was written since (`changes` is what the connection has changed in all)."""

    __slots__ = ("changes", "payloads", "rows")

    def __init__(self) -> None:
        self.changes = 0
        self.rows: dict[int, list[Row]] = {}
        self.payloads: dict[int, bytes] = {}

    def add(self, row: Row, payload: bytes) -> None:
        """One more row of a kind of which all rows are here."""
        self.rows.setdefault(row[KIND], []).append(row)
        self.payloads[row[ID]] = payload


class Memory:
    """The memory of one writer. Invariants:

    counts    the rows of `tasks` by state; `taken` of them since the tables were read, `forgotten` of those
    heads     when something of each kind that waits is due, and whose turn it is
    claims    fence → parts; each row of `claims` is one part, each leased item is out in exactly one
    soonest   at most the earliest end of a part's lease
    counted   rows that an audit is counting now
    runs      function and beginning of the tokens of each row of `runs` (known.py)
    fresh     None, or what a claim that follows at once need not read
    fence     no fence that was ever given is above it, whatever the retention removed; `name` is the database's own
    stored    µs, when somebody submitted last
    ahead     µs that the wall clock was ahead of the monotonic one when both were last looked at
    looked    µs of the monotonic one, then
    longest   µs: no lease was ever granted for longer
    noted_changes  what the connection had changed in all when the wall clock was last noted
    """

    def __init__(self) -> None:
        self.kinds = SqliteKinds()
        self.ids = Ids(0)
        self.counts: Counter[State] = Counter()
        self.taken = self.forgotten = 0
        self.counted: RowCount | None = None
        self.heads = Heads(self.kinds.lane_of)
        self.claims: dict[int, list[ClaimPart]] = {}
        self.soonest = BLOCKED
        self.fresh: Fresh | None = None
        self.ahead = self.looked = self.longest = self.noted_changes = 0
        self.fence = 0
        self.name = ""
        self.stored = 0
        self.keyed = 0
        self.runs: set[tuple[str, str]] = set()
        self.turn = 0
        self.loaded = False

    def reload(self, connection: sqlite3.Connection) -> None:
        """Reads everything from the tables."""
        self.fresh = None
        self.kinds.reload(connection)
        self.counts = rows_by_state(connection)
        self.taken, self.forgotten = self.counts.total(), 0
        if self.counted is not None:
            self.counted.begins_again = True
        self.heads = Heads(self.kinds.lane_of)
        self.heads.reload(firsts(connection))
        out: defaultdict[int, set[int]] = defaultdict(set)
        for number, fence in connection.execute("SELECT id, fence FROM tasks WHERE state IN (2, 3, 4)").fetchall():
            out[fence].add(number)
        self.claims = {}
        for number, fence, until, ids in connection.execute("SELECT number, fence, until, ids FROM claims").fetchall():
            part = ClaimPart(number, until, out[fence].intersection(json.loads(ids)))
            self.claims.setdefault(fence, []).append(part)
        self.find_soonest()
        noted = connection.execute("SELECT ahead, wall - ahead, longest FROM lease_clock").fetchone()
        self.ahead, self.looked, self.longest = noted or (0, 0, 0)
        (highest,) = connection.execute("SELECT coalesce(max(fence), 0) FROM tasks").fetchone()
        self.name, noted = identity(connection)
        self.fence = max(noted, highest)
        (self.keyed,) = connection.execute("SELECT count(*) FROM keyed").fetchone()
        self.runs = stems(connection)
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM tasks").fetchone()
        self.ids = Ids(max(last, self.ids.last))
        self.loaded = True

    @property
    def height(self) -> Height:
        """How high the fences of this database have come."""
        return Height(self.name, self.fence)

    def moved(self, before: State, after: State, count: int = 1) -> None:
        """Counts a change of state."""
        self.counts[before] -= count
        self.counts[after] += count

    def first(self, kind: int, now: int) -> int:
        """A time to wait for that is not after any other of the kind: who has it is leased first of those."""
        return min(now, self.heads.bounds.get(kind, now))

    def just_submitted(self, connection: sqlite3.Connection) -> Fresh | None:
        """What was submitted by the last writes, if nothing else was written since. It is told once."""
        fresh, self.fresh = self.fresh, None
        return fresh if fresh is not None and fresh.changes == connection.total_changes else None

    def claim(self, connection: sqlite3.Connection, fence: int, until: int, numbers: Iterable[int]) -> None:
        """Notes items that are out together until `until`, durably."""
        out = set(numbers)
        number = connection.execute(
            "INSERT INTO claims (fence, until, ids) VALUES (?, ?, ?)", (fence, until, json_text([*out]))
        ).lastrowid
        assert number is not None
        self.claims.setdefault(fence, []).append(ClaimPart(number, until, out))
        self.soonest = min(self.soonest, until)

    def find_soonest(self) -> None:
        """Looks at all parts."""
        self.soonest = min((part.until for parts in self.claims.values() for part in parts), default=BLOCKED)

    def leased_until(self, fence: int, number: int) -> int:
        """The end of an item's lease, µs by the monotonic clock; 0 when it is not out. Any thread may ask."""
        return next((part.until for part in self.claims.get(fence, ()) if number in part.out), 0)

    def part(self, connection: sqlite3.Connection, fence: int, numbers: Collection[int]) -> None:
        """Items of a claim are to have a lease apart from the others. The others' row says that they are alone: who
        reads it after a restart would end these with those."""
        former = [each for each in self.claims.get(fence, ()) if not each.out.isdisjoint(numbers)]
        self.release(connection, fence, numbers)
        for each in former:
            connection.execute("UPDATE claims SET ids = ? WHERE number = ?", (json_text([*each.out]), each.number))

    def release(self, connection: sqlite3.Connection, fence: int, numbers: Collection[int]) -> None:
        """Items of a claim are not out any more; a part with none out is over."""
        parts = self.claims.get(fence)
        if parts is None:
            return
        for part in parts:
            part.out.difference_update(numbers)
            if not part.out:
                connection.execute("DELETE FROM claims WHERE number = ?", (part.number,))
        self.claims[fence] = [part for part in parts if part.out]
        if not self.claims[fence]:
            del self.claims[fence]


def firsts(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """The earliest next trigger of each kind in which something waits."""
    statement = (
        "SELECT kind, min(next_trigger) AS first FROM tasks WHERE next_trigger IS NOT NULL GROUP BY kind"
        " HAVING first < ?"
    )
    return connection.execute(statement, (BLOCKED,)).fetchall()


def rows_by_state(connection: sqlite3.Connection) -> Counter[State]:
    """Every row is looked at. (Not GROUP BY state: without an index on it that sorts every row in memory.)"""
    row = connection.execute(f"SELECT {SUMS} FROM tasks").fetchone()
    return Counter(dict(zip(State, row, strict=True)))
