"""Leases of a worker: the deadlines until which it may run its items, its half of the lease chain (L4 to L7).

A lease counts from when the request was *sent*, so the worker remembers when it sent each. A grant renews whole groups
(one tailer's session each); an assignment's lease counts from the last request that the scheduler had seen. A group
that a grant does not name keeps its deadline.
Pure: `now` and deadlines are absolute CLOCK_MONOTONIC seconds of this host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...model.workload import INDEX_BITS

#: Requests whose sending time is remembered: far more than can be unanswered within one lease.
REMEMBERED = 256


@dataclass(slots=True, eq=False)
class LeaseGroup:
    """The items that are leased through one tailer's session. Invariant: `deadline` is never later than its granter
    allowed."""

    session: int
    number: int
    deadline: float = 0.0
    stopped: bool = False  # its items were told to end


@dataclass(slots=True)
class Session:
    """One session with a scheduler. `requests` holds when each of the last requests was sent; 0 is the hello."""

    requests: dict[int, float] = field(default_factory=dict)
    last_request: int = 0
    groups: dict[int, LeaseGroup] = field(default_factory=dict)


class Leases:
    """The deadlines of all items in a worker. Items are named by keys, flights by their keys without the index."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._flights: dict[int, LeaseGroup] = {}  # flight key → group; outlives the session, until the items are gone
        self._pinned: dict[int, float] = {}  # key of a revoked item → the deadline that it keeps

    def hello(self, session: int, now: float) -> None:
        """Begins a session whose hello was sent at `now`."""
        self._sessions.setdefault(session, Session()).requests.setdefault(0, now)

    def request(self, session: int, now: float) -> int:
        """Takes note that a lease request is about to be sent. Returns its number."""
        known = self._sessions[session]
        known.last_request += 1
        known.requests[known.last_request] = now
        if len(known.requests) > REMEMBERED:
            known.requests.pop(next(number for number in known.requests if number))
        return known.last_request

    def assigned(self, session: int, group: int, flight: int, request: int, lease: float, now: float) -> float | None:
        """Takes in an assignment. Returns its deadline; None: its lease is over already, or answers no request of this
        session (L5), so none of it may start."""
        known = self._sessions.get(session)
        sent = known.requests.get(request) if known else None
        if known is None or sent is None or sent + lease <= now:
            return None
        deadline = sent + lease
        found = known.groups.get(group)
        if found is None or found.stopped or found not in self._flights.values():
            # Nothing of it is here: start afresh. What was told to end keeps its old deadline.
            found = known.groups[group] = LeaseGroup(session, group, deadline)
        else:
            found.deadline = min(found.deadline, deadline)
        self._flights[flight] = found
        return found.deadline

    def granted(self, session: int, request: int, leases: Mapping[int, float], revoked: Iterable[int]) -> None:
        """Takes in the answer to a request. `leases`: group → seconds from when it was sent; `revoked` keys are not
        renewed."""
        known = self._sessions.get(session)
        sent = known.requests.get(request) if known else None
        if known is None or sent is None:
            return
        for key in revoked:
            group = self._flights.get(key >> INDEX_BITS)
            if group is not None:
                self._pinned.setdefault(key, group.deadline)
        for number, lease in leases.items():
            group = known.groups.get(number)
            if group is not None and not group.stopped:
                group.deadline = max(group.deadline, sent + lease)

    def earliest(self, keys: Iterable[int]) -> float:
        """The earliest deadline of these items; 0: there are none."""
        flights, pinned = self._flights, self._pinned
        here = set(keys)
        deadlines = [flights[flight].deadline for flight in {key >> INDEX_BITS for key in here} if flight in flights]
        if pinned:
            deadlines += [deadline for key, deadline in pinned.items() if key in here]
        return min(deadlines, default=0.0)

    def ending(self, before: float) -> tuple[set[int], set[int]]:
        """Flights and single items whose lease ends by then. A flight is given once, a single item each time."""
        groups = {group for group in self._flights.values() if not group.stopped and group.deadline <= before}
        for group in groups:
            group.stopped = True
        items = {key for key, deadline in self._pinned.items() if deadline <= before}
        return {flight for flight, group in self._flights.items() if group in groups}, items

    def lost(self, session: int) -> None:
        """Forgets a session that is gone for good: nothing of it is renewed any more."""
        self._sessions.pop(session, None)

    def keep(self, keys: Iterable[int]) -> None:
        """Forgets every flight and revoked item but those of `keys`, which are all that are in the worker."""
        here = set(keys)
        alive = {key >> INDEX_BITS for key in here}
        self._flights = {flight: group for flight, group in self._flights.items() if flight in alive}
        self._pinned = {key: deadline for key, deadline in self._pinned.items() if key in here}
        used = set(map(id, self._flights.values()))
        for session in self._sessions.values():
            session.groups = {number: group for number, group in session.groups.items() if id(group) in used}
