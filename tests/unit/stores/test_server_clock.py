"""A server's clock that is set forward ends no lease, and an answer that is slow is no such clock."""

from __future__ import annotations

from tailrace.stores.queue.server_clock import ServerClock
from tailrace.testing.clock import ManualClock

WAIT = 40.0


class World:
    """A server whose clock may be `set` by so many seconds, and that answers after so many seconds."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = ServerClock("a server", WAIT, self.clock)
        self.set = 0.0

    def ask(self, *, before: float = 0.0, after: float = 0.0) -> bool:
        """Asks for the time. Returns whether leases may end behind an answer that took so long before and after the
        server looked at its clock."""
        asked = self.clock.monotonic()
        self.clock.advance(before)
        moment = int((self.clock.wall() + self.set) * 1e6)
        self.clock.advance(after)
        self.server.told(moment, asked)
        return self.server.leases_may_end


def test_a_clock_that_was_set_forward_ends_no_lease_for_that_of_a_source() -> None:
    world = World()
    assert world.ask()
    world.clock.advance(100.0)
    assert world.ask()
    # When it is set forward
    world.set += 60.0
    # Then none ends, for as long as who holds something needs to renew it
    assert not world.ask()
    world.clock.advance(WAIT - 1)
    assert not world.ask()
    world.clock.advance(1)
    assert world.ask()


def test_a_slow_answer_is_no_clock_that_was_set() -> None:
    world = World()
    for before, after in ((0.0, 0.0), (3.0, 0.0), (0.0, 3.0), (2.0, 2.0), (0.0, 0.0), (5.0, 0.0)):
        assert world.ask(before=before, after=after)
    # But behind one a clock that was set is seen
    world.set += 2.0
    assert not world.ask(before=0.5, after=0.1)


def test_a_clock_that_was_set_back_is_followed() -> None:
    world = World()
    assert world.ask()
    world.set -= 60.0
    assert world.ask()
    world.set += 5.0
    assert not world.ask()
