"""Memory of the queue's writer: counts, kinds, bounds on due times, and the claims. It saves most reads of the tables.

`reload` reads all of it again from the tables: when the file is opened, and after a rollback. Only the writer thread
changes it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from ....model.claim import State
from ....model.height import Height
from ....model.tenant_key import KeyRule, tenant_key
from ...jobs.sqlite.memory import JobMemory
from ...sqlite.identity import identity
from ..claim_yielding import ClaimYielding
from ..ids import Ids
from .dedupe import stems
from .floods import Watch, has_index
from .rows import BLOCKED, ID, LANE, SqliteKinds, TaskRow, json_text
from .tenant_turns import TenantTurns

#: Columns that count the rows of `tasks` by state, in the order of State.
SUMS = ", ".join(f"coalesce(sum(state = {int(state)}), 0)" for state in State)


class ClaimPart:
    """The items of one claim that share a lease: the number of its row, the lease's end in µs of the monotonic clock,
    and the items that are still leased."""

    __slots__ = ("number", "out", "until")

    def __init__(self, number: int, until: int, out: set[int]) -> None:
        self.number = number
        self.until = until
        self.out = out


class RowCount:
    """A count of all rows that is under way (tally.py). It has counted the rows up to the id `at`; the retention
    removed `behind` of these since. `begins_again`: the memory was reloaded, so the count must start again."""

    __slots__ = ("at", "begins_again", "behind")

    def __init__(self) -> None:
        self.at = -1
        self.behind = 0
        self.begins_again = False

    def gone(self, ids: Iterable[int]) -> None:
        """Notes that the retention removed these items."""
        self.behind += sum(1 for each in ids if each <= self.at)


class Fresh:
    """Items that were submitted just now to lanes in which nothing else is due: their rows, and their payloads by id.
    Valid as long as nothing else was written since (`changes` is the number of all changes of the connection)."""

    __slots__ = ("changes", "payloads", "rows")

    def __init__(self) -> None:
        self.changes = 0
        self.rows: dict[int, list[TaskRow]] = {}
        self.payloads: dict[int, bytes] = {}

    def add(self, row: TaskRow, payload: bytes) -> None:
        """Adds a row of a lane all of whose rows are here."""
        self.rows.setdefault(row[LANE], []).append(row)
        self.payloads[row[ID]] = payload


class Memory:
    """The memory of one writer. Invariants:

    counts    rows of `tasks` by state; `taken`: rows since the tables were read, `forgotten`: those removed of them
    earliest  lane → at most the earliest next trigger of its waiting items; a lane in which no item waits by itself is
              absent once a claim found that out, so that a lane that was used once costs later claims nothing
    passed    lane → closed kinds, and a bound like `earliest` for the lane's other kinds: they save a look at the same
              items again while a gate keeps many of them at the lane's head
    tenant_turns  the lanes whose tenants take turns, because a flood stands before others; they are not in `earliest`
    watches   for each lane in which items wait, the signs of a flood
    index     whether the index of turns exists; `turned`: µs, when it was last of use
    claims    fence → parts; each row of `claims` is one part, and each leased item is in exactly one
    soonest   at most the earliest end of a part's lease
    jobs      the writer's memory of jobs
    keyed, callbacks  the number of rows of these tables
    counted   the count of rows for an audit that is under way
    runs      function and beginning of the tokens of each row of `runs` (dedupe.py)
    fresh     None, or items that a claim that follows at once need not read
    fence     no fence was ever given above it, whatever the retention removed; `name`: the database's own name
    stored    µs, when an item was stored last; `submitted`: when somebody submitted one
    ahead     µs that the wall clock was ahead of the monotonic one when both were last looked at
    looked    µs of the monotonic clock at that time
    longest   µs: no lease was ever granted for longer
    noted_changes  the number of all changes of the connection when the wall clock was last noted
    """

    def __init__(self, yielding: ClaimYielding | None = None, key_rule: KeyRule = tenant_key) -> None:
        self.key_rule = key_rule
        self.kinds = SqliteKinds()
        self.ids = Ids(0)
        self.counts: Counter[State] = Counter()
        self.taken = self.forgotten = 0
        self.counted: RowCount | None = None
        self.jobs = JobMemory()
        self.earliest: dict[int, int] = {}
        self.passed: dict[int, tuple[frozenset[int], int]] = {}
        self.tenant_turns = TenantTurns(self.kinds.lane_of)
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
        self.yielding = yielding or ClaimYielding()
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
        """The highest fence that this database gave."""
        return Height(self.name, self.fence)

    def moved(self, before: State, after: State, count: int = 1) -> None:
        """Counts a change of state."""
        self.counts[before] -= count
        self.counts[after] += count

    def count_new(self, count: int) -> None:
        """Counts new rows of `tasks`."""
        self.counts[State.NEW] += count
        self.taken += count

    def look_at_waiting(self, connection: sqlite3.Connection) -> None:
        """Reads the due times of waiting items."""
        self.tenant_turns, self.earliest, self.passed = TenantTurns(self.kinds.lane_of), {}, {}
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
        """Notes that so many more items of this kind wait for this moment."""
        if trigger >= BLOCKED:
            return
        lane = self.kinds.lane_of[kind]
        self.watches[lane].put(kind, trigger, count, self.stored)
        if lane in self.tenant_turns.lanes:
            self.tenant_turns.sooner(kind, trigger)
            return
        if trigger < self.earliest.get(lane, BLOCKED):
            self.earliest[lane] = trigger
        passed = self.passed.get(lane)
        if passed is not None and trigger < passed[1]:
            self.passed[lane] = (passed[0], trigger)

    def first(self, kind: int, now: int) -> int:
        """A time to wait for that is not after any other item of the kind: an item with it is leased first of them."""
        lane = self.kinds.lane_of[kind]
        if lane in self.tenant_turns.lanes:
            return min(now, self.tenant_turns.bounds.get(kind, now))
        return min(now, self.earliest.get(lane, now))

    def is_empty(self, lane: int) -> bool:
        """Whether no item waits in a lane by itself, as far as is known."""
        return lane not in self.earliest and lane not in self.tenant_turns.lanes

    def bound(self, lane: int, shut: frozenset[int]) -> int:
        """A time before which no item of the lane's kinds is due, without the `shut` kinds."""
        if shut:
            passed = self.passed.get(lane)
            if passed is not None and passed[0] <= shut:
                return passed[1]
        return self.earliest.get(lane, BLOCKED)

    def note_stored(self, priorities: Iterable[int], items: int, now: int, *, born: bool) -> None:
        """Notes that so many items of these priorities are stored. `born`: nobody submits them; they follow from items
        that ended."""
        self.stored = now
        if not born:
            self.submitted = now
            self.yielding.submitted(priorities, items, now / 1e6)

    def just_submitted(self, connection: sqlite3.Connection) -> Fresh | None:
        """Returns the items of the last submissions, once, if nothing else was written since."""
        fresh, self.fresh = self.fresh, None
        return fresh if fresh is not None and fresh.changes == connection.total_changes else None

    def advance(self, lane: int, shut: frozenset[int], bound: int) -> None:
        """Notes that all items before the bound were taken, except those of `shut` kinds."""
        if shut:
            self.passed[lane] = (shut, bound)
        elif bound < BLOCKED:
            self.earliest[lane] = bound
        else:
            self.earliest.pop(lane, None)
            self.passed.pop(lane, None)
            self.watches.pop(lane, None)

    def claim(self, connection: sqlite3.Connection, fence: int, until: int, numbers: Iterable[int]) -> None:
        """Stores a claim: items that are leased together until `until`."""
        out = set(numbers)
        number = connection.execute(
            "INSERT INTO claims (fence, until, ids) VALUES (?, ?, ?)", (fence, until, json_text([*out]))
        ).lastrowid
        assert number is not None
        self.claims.setdefault(fence, []).append(ClaimPart(number, until, out))
        self.soonest = min(self.soonest, until)

    def find_soonest(self) -> None:
        """Looks at all claims for the earliest end."""
        self.soonest = min((part.until for parts in self.claims.values() for part in parts), default=BLOCKED)

    def leased_until(self, fence: int, number: int) -> int:
        """The end of an item's lease, µs by the monotonic clock; 0: it is not leased. Any thread may ask."""
        return next((part.until for part in self.claims.get(fence, ()) if number in part.out), 0)

    def split(self, connection: sqlite3.Connection, fence: int, numbers: Collection[int]) -> None:
        """Gives items of a claim a lease apart from the others. The others' row is changed too: otherwise a reload
        after a restart would end these items with them."""
        former = [each for each in self.claims.get(fence, ()) if not each.out.isdisjoint(numbers)]
        self.release(connection, fence, numbers)
        for each in former:
            connection.execute("UPDATE claims SET ids = ? WHERE number = ?", (json_text([*each.out]), each.number))

    def release(self, connection: sqlite3.Connection, fence: int, numbers: Collection[int]) -> None:
        """Notes that items of a claim are not leased any more; a part without leased items is removed."""
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
    """Counts all rows by state. (Not GROUP BY state: without an index on it, that sorts every row in memory.)"""
    row = connection.execute(f"SELECT {SUMS} FROM tasks").fetchone()
    return Counter(dict(zip(State, row, strict=True)))
