"""The plan of a claim on PostgreSQL, and the reading of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ....model.claim import Leased
from ....model.demand import Cell, Demand
from ....model.due_times import evenly_spaced
from ....model.workload import Extra
from ...postgres.arrays import numbers
from ..gates import ShutLanes
from ..ids import id_text
from ..kinds import Kinds
from ..turns import ReadyLane, limits_in_turn
from .bounds import LookBounds
from .rows import mark_of_job
from .statements import ATTEMPTS, CRASHES, DUE_AT, EXPIRES_AT, FENCE, HEADERS, ID, KEY, KIND, PAYLOAD, PROGRESS

_decode = msgspec.json.Decoder(type=tuple[tuple[str, str], ...]).decode


class Lanes(NamedTuple):
    """The lanes that a demand may visit, the closed kinds in them, and the lanes that have closed kinds."""

    lanes: list[int]
    shut: list[int]
    partly: set[int]


def open_lanes(kinds: Kinds, stocked: Iterable[int], demand: Demand, gates: ShutLanes) -> Lanes:
    """The lanes among `stocked` that a demand names and no gate closes."""
    found = Lanes([], [], set())
    for lane in stocked:
        cell = kinds.cells.get(lane)
        if cell is None or demand.cells.get(cell, 0) <= 0 or gates.shut(*kinds.lanes[lane]):
            continue
        found.lanes.append(lane)
        if some := gates.shut_kinds(kinds, lane):
            found.shut.extend(some)
            found.partly.add(lane)
    return found


class PostgresClaimPlan(NamedTuple):
    """The arguments of `queue_claim` between the time and the lease: columns with one value for each visit, and
    `wanted` with one for each cell."""

    visits: str
    limits: str
    bounds: str
    cells: str
    wanted: str
    shut: str
    turns: str
    total: int
    room: int


def planned(
    kinds: Kinds,
    demand: Demand,
    ready: Sequence[int],
    shut: Sequence[int],
    bounds: LookBounds,
    turns: Mapping[int, int] | None,
    share: float,
    turn: int,
    most: int,
) -> PostgresClaimPlan:
    """Plans visits in turns, for at most `most` items. Lanes for which nothing was left come last: they get the room
    that others leave. `turns`: lane → the kind whose turn was last; None: no turns. A lane of a single, open kind needs
    none."""
    total = min(demand.total, most)
    waiting = [ReadyLane(lane, kinds.lanes[lane][1], demand.cells[kinds.cells[lane]]) for lane in ready]
    limits = limits_in_turn(waiting, total, share, turn)
    places: dict[Cell, int] = {}
    cells = [places.setdefault(kinds.cells[lane], len(places) + 1) for lane in limits]
    return PostgresClaimPlan(
        visits=numbers(limits),
        limits=numbers(limits.values()),
        bounds=numbers(bounds.of(lane) for lane in limits),
        cells=numbers(cells),
        wanted=numbers(demand.cells[cell] for cell in places),
        shut=numbers(shut),
        turns=numbers(
            turns.get(lane, 0) if turns is not None and (shut or kinds.sizes[lane] > 1) else -1 for lane in limits
        ),
        total=total,
        room=demand.max_bytes,
    )


class PostgresClaimed(NamedTuple):
    """The result of a claim, without items whose time to start is past; `expired` has their ids. `redriven`: indexes of
    items of jobs in another life, whose origins are to be looked up."""

    number: int
    moment: int
    ids: list[int]
    leased: Leased | None
    expired: list[int]
    redriven: Sequence[int] = ()


def claimed(kinds: Kinds, rows: Sequence[tuple[Any, ...]], seconds: float) -> PostgresClaimed:
    """Reads the rows of `queue_claim`, at least one; their kinds are known."""
    fence, number, moment = rows[0][FENCE:]
    ids = [row[ID] for row in rows]
    expired = [row[ID] for row in rows if 0 < row[EXPIRES_AT] <= moment / 1e6]
    if expired:
        gone = set(expired)
        rows = [row for row in rows if row[ID] not in gone]
        if not rows:
            return PostgresClaimed(number, moment, ids, None, expired)
    extras: dict[int, Extra] = {}
    jobs: list[int] = []
    max_failures: dict[int, int] = {}
    redriven: list[int] = []
    for index, row in enumerate(rows):
        crashes, key, headers = row[CRASHES], row[KEY], row[HEADERS]
        expires_at, progress = row[EXPIRES_AT], row[PROGRESS]
        if headers and headers[1] != "[" and (mark := mark_of_job(headers)):
            jobs.append(index)
            if mark[1]:
                redriven.append(index)
            if most := mark[2]:
                max_failures[index] = int(most)
            headers = ""
        if crashes or key or headers or expires_at or progress:
            extras[index] = Extra(
                key=key,
                headers=_decode(headers) if headers else (),
                crashes=crashes,
                expires_at=expires_at,
                alone=crashes > 0,
                progress=progress,
            )
    leased = Leased(
        fence=fence,
        lease=seconds,
        kinds=[kinds.kinds[row[KIND]] for row in rows],
        ids=[id_text(row[ID]) for row in rows],
        payloads=[row[PAYLOAD] for row in rows],
        attempts=[row[ATTEMPTS] + 1 for row in rows],
        extras=extras,
        dues=[row[DUE_AT] / 1e6 if row[DUE_AT] else 0.0 for row in evenly_spaced(rows)],
        jobs=jobs,
        max_failures=max_failures,
    )
    return PostgresClaimed(number, moment, ids, leased, expired, redriven)
