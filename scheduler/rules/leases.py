"""Leases as the scheduler keeps them: those it holds of each tailer session, and those it granted to each worker.

The arithmetic is in model/lease.py (L1, L2); here is the bookkeeping. Of its own lease requests the scheduler
remembers when it *sent* them, since a grant counts from then (L4, L5). A flight is the lease: nothing is kept per item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...model.lease import LeaseSizes, grant_to_worker, wait_for_worker
from ...model.workload import Owned

#: Lease requests remembered per session; an answer to an older one is worth nothing any more.
REMEMBERED = 64


class Requests:
    """The lease requests sent on one session. Number 0 stands for the welcome, before any request was seen."""

    __slots__ = ("_number", "_sent")

    def __init__(self, welcomed_at: float) -> None:
        self._number = 0
        self._sent = {0: welcomed_at}

    def send(self, now: float) -> int:
        """Numbers a request that is being sent now."""
        self._number += 1
        self._sent[self._number] = now
        self._sent.pop(self._number - REMEMBERED, None)
        return self._number

    def sent_at(self, number: int) -> float | None:
        """Time at which a request was sent; None: never, or too long ago to matter."""
        return self._sent.get(number)


class FlightLease:
    """One pushed flight: until when its items are ours (monotonic), and how many of them have not ended.

    Invariant: a lapsed flight stays lapsed, whatever is granted later (L10).
    """

    __slots__ = ("fence", "lapsed", "open", "owned", "until")

    def __init__(self, until: float, items: int, fence: int = 0, owned: Owned | None = None) -> None:
        self.until = until
        self.open = items
        self.lapsed = False
        self.fence = fence
        self.owned = owned


class HeldFlights:
    """The flights held of one tailer session. Invariant: a flight is listed while at least one of its items is open.

    `ended` keeps owned flights whose items have all ended until that was said (unheard.py has them from then on): their
    outcomes may yet go to another owner.
    """

    __slots__ = ("ended", "flights", "items", "last_flight")

    def __init__(self) -> None:
        self.flights: dict[int, FlightLease] = {}
        self.ended: dict[int, FlightLease] = {}
        self.items = 0
        self.last_flight = 0

    def add(self, flight: int, until: float, items: int, fence: int = 0, owned: Owned | None = None) -> bool:
        """Notes a flight that was pushed. False: its number was seen before, or is out of order (L5)."""
        if flight <= self.last_flight:
            return False
        self.last_flight = flight
        if items:
            self.put(flight, FlightLease(until, items, fence, owned))
        return True

    def put(self, flight: int, lease: FlightLease) -> None:
        """Takes over a flight that another session held."""
        if lease.open:
            self.flights[flight] = lease
            self.items += lease.open
        else:
            self.ended[flight] = lease

    def known(self) -> dict[int, FlightLease]:
        """The flights that are listed, and those that ended and are kept."""
        return {**self.flights, **self.ended} if self.ended else self.flights

    def say_ended(self) -> dict[int, FlightLease]:
        """Takes out the flights that ended, as all of their outcomes are being said."""
        said, self.ended = self.ended, {}
        return said

    def renew(self, until: float, listed: Iterable[int]) -> list[int]:
        """Extends the flights that the tailer lists in its grant. Returns those that it does not hold any more; they
        are forgotten here."""
        listed = set(listed)
        for number in listed:
            flight = self.flights.get(number)
            if flight is not None and not flight.lapsed:
                flight.until = max(flight.until, until)
        gone = [number for number in self.flights if number not in listed]
        for number in gone:
            self.forget(number)
        return gone

    def forget(self, flight: int) -> bool:
        """Forgets a flight that the tailer does not hold any more. False: it was not held here either."""
        self.ended.pop(flight, None)
        held = self.flights.pop(flight, None)
        if held is not None:
            self.items -= held.open
        return held is not None

    def end(self, flight: int, items: int) -> bool:
        """Counts ended items of a flight. False: the tailer does not hold that flight any more; nobody wants to
        know."""
        held = self.flights.get(flight)
        if held is None:
            return False
        held.open -= items
        self.items -= items
        assert held.open >= 0
        if not held.open:
            del self.flights[flight]
            if held.owned is not None:
                self.ended[flight] = held
        return True

    def lapse(self, now: float) -> list[int]:
        """Marks and returns the flights whose lease is over."""
        over = [number for number, flight in self.flights.items() if not flight.lapsed and flight.until <= now]
        for number in over:
            self.flights[number].lapsed = True
        return over

    def until(self, flights: Collection[int] | None = None) -> float:
        """Time until which all of these flights (None: all that have not lapsed) are held; 0.0: one of them is not."""
        if flights is None:
            return min((flight.until for flight in self.flights.values() if not flight.lapsed), default=0.0)
        held = [self.flights.get(number) for number in flights]
        return min([0.0 if flight is None or flight.lapsed else flight.until for flight in held], default=0.0)

    def ends(self) -> float:
        """Time at which the last of the flights is over; 0.0: there is none."""
        return max((flight.until for flight in self.flights.values()), default=0.0)


class Granted:
    """The grant to one worker. A grant counts from when the worker sent its request, hence for us at the latest from
    when we received it (`since`): granting and waiting both start there.

    Invariant: `over` is not before the end of any lease the worker may still hold.
    """

    __slots__ = ("number", "over", "since")

    def __init__(self, hello_at: float) -> None:
        self.number = 0
        self.since: float | None = hello_at
        self.over = hello_at

    def requested(self, number: int, now: float) -> None:
        """Notes that the worker asked for renewal."""
        if number > self.number:
            self.number = number
            self.since = now

    def reconnected(self) -> None:
        """Notes a second hello: until a request was seen, which hello a lease would count from is not certain."""
        if self.number == 0:
            self.since = None

    def fresh(self, sizes: LeaseSizes, now: float) -> bool:
        """Whether the worker asked recently enough that a new lease is worth giving."""
        return self.since is not None and now - self.since < 2 * sizes.heartbeat + sizes.round_trip

    def grant(self, sizes: LeaseSizes, until: float) -> float:
        """Seconds of lease, counted by the worker from its last request, for items that we hold until `until`."""
        if self.since is None:
            return 0.0
        lease = grant_to_worker(sizes, until - self.since)
        if lease > 0:
            self.over = max(self.over, self.since + wait_for_worker(sizes, lease))
        return lease
