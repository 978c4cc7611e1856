"""Sessions, as the scheduler keeps them: state, and the outbox that the next frame is made of. Nothing here decides;
the rules do, and core.py applies them."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from ..model.demand import Cell, Closed
from ..model.function_spec import FunctionSpec
from ..model.lease import LeaseSizes
from ..model.workload import Ended, Kind
from .rules.flow import Item
from .rules.leases import Granted, HeldFlights, Requests
from .rules.placement import WorkerPool
from .unheard import Unheard

#: Names a row of ownership: source and partition.
RowKey = tuple[str, str]


class AdoptedFlight(NamedTuple):
    """The adopted items of a flight, of one part of the source: its new number, its fence, and the items by index and
    position."""

    number: int
    fence: int
    part: str
    indexes: list[int]
    positions: list[int]


class Adoption(NamedTuple):
    """The answer to a tailer that asked to adopt. `refused` says why not; empty: confirmed. `until` is when the last
    lease on running items is over (monotonic)."""

    row: RowKey
    version: int
    refused: str
    until: float = 0.0
    flights: Sequence[AdoptedFlight] = ()


class TailerSession:
    """A session that pushes. `group` is its number towards workers, which renew its items together.

    Invariant: every open item of `held` is in exactly one place: a lane, an assignment, or a worker's `open`.
    """

    def __init__(self, session: str, name: str, group: int, welcomed_at: float, patient: bool = False) -> None:
        self.session = session
        self.name = name
        self.group = group
        self.held = HeldFlights()
        self.requests = Requests(welcomed_at)
        self.connected = False
        self.away_since = welcomed_at
        self.draining = False
        self.wants_result = False
        self.patient = patient  # its items wait for a worker however long: a call that waits until its own deadline
        self.through_outages = patient  # its items run although their function is clogged
        self.rows: set[RowKey] = set()  # rows of ownership that it pushed under
        self.store = ""  # the name of what gives its fences, or keeps its rows
        self.shown = 0  # the newest version of a row that it showed
        # The outbox.
        self.succeeded: list[int] = []
        self.ended: dict[int, Ended] = {}
        self.unheard = Unheard()
        self.cells: dict[Cell, int] = {}
        self.closed: frozenset[Closed] | None = None
        self.functions: dict[str, FunctionSpec] = {}
        self.total = 0
        self.request_due = True
        self.adoptions: list[Adoption] = []
        self.barred: dict[RowKey, int] = {}
        self.height: int | None = None  # of its store, as it was seen: it asked for that


class Assignment:
    """Items on their way to one pool, all of one tailer session. They are in the worker's `open` already."""

    __slots__ = ("bytes", "flight", "items", "pool", "tailer")

    def __init__(self, flight: int, tailer: TailerSession, pool: WorkerPool, items: list[Item], size: int) -> None:
        self.flight = flight
        self.tailer = tailer
        self.pool = pool
        self.items = items
        self.bytes = size


class WorkerFlight:
    """Items that were assigned together, for counting per flight, never per item. `group` is the number that the worker
    leases it by; `tailers` are the sessions whose items it holds: one, until some of them were adopted by another. `at`
    is when they were assigned (monotonic)."""

    __slots__ = ("at", "group", "open", "pool", "tailers")

    def __init__(self, tailer: TailerSession, pool: WorkerPool, items: int, at: float) -> None:
        self.at = at
        self.group = tailer.group
        self.tailers: tuple[TailerSession, ...] = (tailer,)
        self.pool = pool
        self.open = items


class WorkerSession:
    """A session that runs. Invariants: `open` holds every item assigned and not reported, by this session's refs;
    `flights` counts them by flight; a ref in `revoked` or `parents` is in `open`; a flight number is used once."""

    def __init__(self, session: str, name: str, hello_at: float) -> None:
        self.session = session
        self.name = name
        self.granted = Granted(hello_at)
        self.specs: dict[str, FunctionSpec] = {}
        self.pools: dict[str, WorkerPool] = {}
        self.labels: dict[str, str] = {}
        self.unable: dict[str, str] = {}  # functions that it has and cannot run → what it lacks
        self.versions: dict[str, str] = {}  # functions → a word for the arguments that they take there
        self.open: dict[int, Item] = {}
        self.flights: dict[int, WorkerFlight] = {}
        self.last_flight = 0
        self.greeted = False  # had a first connection
        self.connected = False
        self.away_since = hello_at
        self.draining = False
        self.heard_at = 0.0  # wall clock seconds
        self.succeeded = 0  # items, since it attached
        self.revoked: set[int] = set()
        self.parents: set[int] = set()  # those that wait for other work: counted neither in pools nor in limits
        self.gone_on: dict[int, float] = {}  # those that waited and go on, since when
        self.carried: Counter[Kind] = Counter()  # runs of sessions that are not known, which limits count (FL22)
        # The outbox.
        self.assignments: deque[Assignment] = deque()
        self.grants_due = False
        self.cancel: list[int] = []

    @property
    def able(self) -> bool:
        """Whether it takes new items at all."""
        return self.connected and not self.draining

    def lost_at(self, sizes: LeaseSizes) -> float:
        """Time at which its assigned items are lost, unless it comes back: after its leases; inf: it is connected."""
        return math.inf if self.connected else max(self.granted.over, self.away_since + sizes.heartbeat)

    def grants(self, sizes: LeaseSizes, now: float) -> list[tuple[int, float]]:
        """(group, seconds) for each group of which it has items that their sessions still hold."""
        untils: dict[int, float] = {}
        for group, tailer in {(flight.group, each) for flight in self.flights.values() for each in flight.tailers}:
            # 0: nothing of the session is held any more, so its items are revoked; adopted ones in its group are not.
            if until := tailer.held.until():
                untils[group] = min(untils.get(group, until), until)
        leases = {group: self.granted.grant(sizes, until) for group, until in untils.items() if until > now}
        return [(group, lease) for group, lease in leases.items() if lease > 0]
