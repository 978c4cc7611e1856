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
from ...jobs.sqlite.memory import JobMemory
from ...sqlite.identity import identity
from ..ids import Ids
from ..making_way import MakingWay
from .dedupe import stems
from .floods import Watch, has_index
from .heads import Heads
from .rows import BLOCKED, ID, LANE, SqliteKinds, TaskRow, json_text

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
    """Items submitted just now to lanes in which nothing else is due: rows, and payloads by id. True for as long as
    nothing was written since (`changes` is what the connection has changed in all)."""

    __slots__ = ("changes", "payloads", "rows")

    def __init__(self) -> None:
        self.changes = 0
        self.rows: dict[int, list[TaskRow]] = {}
        self.payloads: dict[int, bytes] = {}

    def add(self, row: TaskRow, payload: bytes) -> None:
        """One more row of a lane of which all rows are here."""
        self.rows.setdefault(row[LANE], []).append(row)
        self.payloads[row[ID]] = payload


class Memory:
    """The memory of one writer. Invariants:

    counts    the rows of `tasks` by state; `taken` of them since the tables were read, `forgotten` of those
    earliest  at most the earliest next trigger of what waits in the lane; a lane in which nothing waits by itself is
              absent once a claim found that out, so that what was used once costs no claim
    passed    lane → closed kinds and a bound like `earliest`, for the lane's other kinds: what is not looked at again
              while a gate keeps many items at the lane's head
    heads     the lanes whose tenants take turns, for one's flood stands before others; they are not in `earliest`
    watches   of each lane in which something waits, what tells of a flood
    index     whether the index of turns is there; `turned`: µs, when it was last of use
    claims    fence → parts; each row of `claims` is one part, each leased item is out in exactly one
    soonest   at most the earliest end of a part's lease
    jobs      what the writer remembers of jobs
    keyed, callbacks  the rows of these tables
    counted   rows that an audit is counting now
    runs      function and beginning of the tokens of each row of `runs` (dedupe.py)
    fresh     None, or what a claim that follows at once need not read
    fence     no fence that was ever given is above it, whatever the retention removed; `name` is the database's own
    stored    µs, when something was stored last; `submitted`: when somebody submitted it
    ahead     µs that the wall clock was ahead of the monotonic one when both were last looked at
    looked    µs of the monotonic one, then
    longest   µs: no lease was ever granted for longer
    noted_changes  what the connection had changed in all when the wall clock was last noted
    """

    def __init__(self, way: MakingWay | None = None) -> None:
        self.kinds = SqliteKinds()
        self.ids = Ids(0)
        self.counts: Counter[State] = Counter()
        self.taken = self.forgotten = 0
        self.counted: RowCount | None = None
        self.jobs = JobMemory()
        self.earliest: dict[int, int] = {}
        self.passed: dict[int, tuple[frozenset[int], int]] = {}
        self.heads = Heads(self.kinds.lane_of)
        self.watches: defaultdict[int, Watch] = defaultdict(Watch)
        self.index = False
        self.turned = 0
        self.claims: dict[int, list[ClaimPart]] = {}
        self.soonest = BLOCKED
        self.fresh: Fresh | None = None
        self.ahead = self.looked = self.longest = self.noted_changes = 0
        self.fence = 0
        self.name = ""
        self.stored = self.submitted = 0
        self.way = way or MakingWay()
        self.keyed = self.callbacks = 0
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
        self.jobs.reload(connection)
        self.look_at_waiting(connection)
        out: defaultdict[int, set[int]] = defaultdict(set)
        for number, fence in connection.execute("SELECT id, fence FROM tasks WHERE state IN (2, 4)").fetchall():
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
        (self.callbacks,) = connection.execute("SELECT count(*) FROM callbacks").fetchone()
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

    def came(self, count: int) -> None:
        """Counts new rows of `tasks`."""
        self.counts[State.NEW] += count
        self.taken += count

    def look_at_waiting(self, connection: sqlite3.Connection) -> None:
        """Reads when what waits is due."""
        self.heads, self.earliest, self.passed = Heads(self.kinds.lane_of), {}, {}
        self.watches, self.index = defaultdict(Watch), has_index(connection)
        statement = (
            "SELECT lane, kind, min(next_trigger), max(next_trigger) FROM tasks WHERE next_trigger < ?"
            " GROUP BY lane, kind"
        )
        for lane, kind, first, last in connection.execute(statement, (BLOCKED,)).fetchall():
            self.earliest[lane] = min(first, self.earliest.get(lane, first))
            self.watches[lane].lasts[kind] = last
            self.watches[lane].left = 0

    def sooner(self, kind: int, trigger: int, count: int = 1) -> None:
        """So many more items of this kind wait for this moment."""
        if trigger >= BLOCKED:
            return
        lane = self.kinds.lane_of[kind]
        self.watches[lane].put(kind, trigger, count, self.stored)
        if lane in self.heads.lanes:
            self.heads.sooner(kind, trigger)
            return
        if trigger < self.earliest.get(lane, BLOCKED):
            self.earliest[lane] = trigger
        passed = self.passed.get(lane)
        if passed is not None and trigger < passed[1]:
            self.passed[lane] = (passed[0], trigger)

    def first(self, kind: int, now: int) -> int:
        """A time to wait for that is not after any other of the kind: who has it is leased first of those."""
        lane = self.kinds.lane_of[kind]
        return min(now, self.heads.bounds.get(kind, now) if lane in self.heads.lanes else self.earliest.get(lane, now))

    def is_empty(self, lane: int) -> bool:
        """Whether nothing waits in a lane by itself, for all that is known."""
        return lane not in self.earliest and lane not in self.heads.lanes

    def bound(self, lane: int, shut: frozenset[int]) -> int:
        """A time before which nothing of the lane's kinds, without the `shut` ones, is due."""
        if shut:
            passed = self.passed.get(lane)
            if passed is not None and passed[0] <= shut:
                return passed[1]
        return self.earliest.get(lane, BLOCKED)

    def comes(self, priorities: Iterable[int], items: int, now: int, *, born: bool) -> None:
        """So many items of these priorities are stored; `born`: nobody submits them, they come of others that ended."""
        self.stored = now
        if not born:
            self.submitted = now
            self.way.submitted(priorities, items, now / 1e6)

    def just_submitted(self, connection: sqlite3.Connection) -> Fresh | None:
        """What was submitted by the last writes, if nothing else was written since. It is told once."""
        fresh, self.fresh = self.fresh, None
        return fresh if fresh is not None and fresh.changes == connection.total_changes else None

    def advance(self, lane: int, shut: frozenset[int], bound: int) -> None:
        """Everything before the bound was taken, but for the `shut` kinds."""
        if shut:
            self.passed[lane] = (shut, bound)
        elif bound < BLOCKED:
            self.earliest[lane] = bound
        else:
            self.earliest.pop(lane, None)
            self.passed.pop(lane, None)
            self.watches.pop(lane, None)

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


def rows_by_state(connection: sqlite3.Connection) -> Counter[State]:
    """Every row is looked at. (Not GROUP BY state: without an index on it that sorts every row in memory.)"""
    row = connection.execute(f"SELECT {SUMS} FROM tasks").fetchone()
    return Counter(dict(zip(State, row, strict=True)))
