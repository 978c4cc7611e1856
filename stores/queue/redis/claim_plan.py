"""The plan of a claim on Redis, and the reading of its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from ....model.claim import Leased
from ....model.demand import Cell, Demand
from ....model.due_times import evenly_spaced
from ....model.workload import FLIGHT_ITEMS, Extra
from ..gates import ShutLanes
from ..kinds import Kinds
from ..turns import ReadyLane, limits_in_turn
from .reports import AT, ATTEMPTS, CRASHES, FLAGS, KIND, TASK
from .script import EXTRA

_decode = msgspec.json.Decoder(type=tuple[str, tuple[tuple[str, str], ...], float]).decode


class RedisClaimPlan(NamedTuple):
    """The arguments of CLAIM from the lease on, and whether they visit any lane."""

    any: bool
    arguments: list[Any]


def planned(
    kinds: Kinds,
    demand: Demand,
    gates: ShutLanes,
    due: Collection[int],
    lease: float,
    share: float,
    turn: int,
) -> RedisClaimPlan:
    """Plans visits in turns of the lanes in `due` that the demand names and no gate closes. In the second round lanes
    that have more items get the room that others left."""
    total = min(demand.total, FLIGHT_ITEMS)
    cells, shut = kinds.cells, frozenset[int]()
    ready: list[ReadyLane] = []
    for lane in due:
        cell = cells[lane]
        wanted = demand.cells.get(cell, 0)
        if wanted > 0 and not gates.shut(*kinds.lanes[lane]):
            ready.append(ReadyLane(lane, cell.priority, wanted))
            shut |= gates.shut_kinds(kinds, lane)
    if not ready or total <= 0:
        return RedisClaimPlan(False, [])
    limits = limits_in_turn(ready, total, share, turn)
    places: dict[Cell, int] = {}
    visits: list[Any] = []
    for lane, limit in limits.items():
        place = places.setdefault(cells[lane], len(places) + 1)
        visits += (lane.to_bytes(4, "big"), limit, place)
    wants = [demand.cells[cell] for cell in places]
    closed = b"".join(kind.to_bytes(4, "big") for kind in shut)
    thought = b"".join(lane.to_bytes(4, "big") for lane in due)
    arguments = [int(lease * 1e6), total, demand.max_bytes, thought, len(wants), *wants, closed, *visits]
    return RedisClaimPlan(True, arguments)


class RedisClaimed(NamedTuple):
    """The result of a claim, without items whose time to start is past; `expired` has their ids. `unread`: number of
    tasks that cannot be read, and are handed to nobody."""

    fence: int
    position: int
    kinds: list[int]
    leased: Leased | None
    expired: list[str]
    unread: int


def number_of_kinds(tasks: bytes) -> list[int]:
    """Numbers of the kinds of tasks."""
    return [row[KIND] for row in TASK.iter_unpack(tasks)]


def claimed(kinds: Kinds, answer: Sequence[Any], seconds: float) -> RedisClaimed:
    """Reads the answer of CLAIM after CLAIMED; its kinds are known."""
    _, moment, fence, position, listed, tasks, payloads, more, unread, _ = answer
    text: str = listed.hex()
    ids = [text[index : index + 16] for index in range(0, len(text), 16)]
    rows = [*TASK.iter_unpack(tasks)]
    extras: dict[int, Extra] = {}
    expired: list[str] = []
    told = {more[n]: (more[n + 1], more[n + 2]) for n in range(0, len(more), 3)}
    for index, row in enumerate(rows):
        crashes = row[CRASHES]
        if index not in told and not crashes:
            continue
        extra, progress = told.get(index, (b"", b""))
        key, headers, expires_at = _decode(extra) if row[FLAGS] & EXTRA and extra else ("", (), 0.0)
        if 0 < expires_at <= moment / 1e6:
            expired.append(ids[index])
        if crashes or progress or extra:
            extras[index] = Extra(
                key=key,
                headers=headers,
                crashes=crashes,
                expires_at=expires_at,
                alone=crashes > 0,
                progress=progress.decode(),
            )
    of, numbers = kinds.kinds, [row[KIND] for row in rows]
    leased = Leased(
        fence=fence,
        lease=seconds,
        kinds=[of[number] for number in numbers],
        ids=ids,
        payloads=payloads,
        attempts=[row[ATTEMPTS] + 1 for row in rows],
        extras=extras,
        dues=_dues(rows),  # a task is answered as it was before the claim
    )
    if expired:
        gone = set(expired)
        return RedisClaimed(fence, position, numbers, _without(leased, rows, gone), expired, unread)
    return RedisClaimed(fence, position, numbers, leased, expired, unread)


def _dues(rows: Sequence[tuple[int, ...]]) -> list[float]:
    return [row[AT] / 1e6 for row in evenly_spaced(rows)]


def _without(leased: Leased, rows: Sequence[tuple[int, ...]], gone: set[str]) -> Leased | None:
    kept = [index for index, id in enumerate(leased.ids) if id not in gone]
    if not kept:
        return None
    return Leased(
        fence=leased.fence,
        lease=leased.lease,
        kinds=[leased.kinds[index] for index in kept],
        ids=[leased.ids[index] for index in kept],
        payloads=[leased.payloads[index] for index in kept],
        attempts=[leased.attempts[index] for index in kept],
        extras={place: leased.extras[index] for place, index in enumerate(kept) if index in leased.extras},
        dues=_dues([rows[index] for index in kept]),
    )
