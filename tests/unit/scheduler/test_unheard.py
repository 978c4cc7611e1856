"""Outcomes on the wire when their stream is handed over: said, and perhaps never heard."""

from __future__ import annotations

from scenes.adoption_bench import ROW, WALL, Bench, positions, refs

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Outcomes, ref
from tailrace.scheduler.endpoints import TailerEnd
from tailrace.scheduler.sessions import TailerSession
from tailrace.wire.link import Link
from tailrace.wire.v1 import scheduler_pb2 as pb


class Owner:
    """An owner whose wire takes what it is told, and may break before that is heard."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.session: TailerSession = bench.owner("first", 1, 1)
        self.link = Link()
        self.end = TailerEnd(bench.core, self.session, self.link, SYSTEM_CLOCK, lambda: None)

    def told(self) -> int:
        """Puts all that there is to say into a frame; returns its number."""
        frame = self.end.compose()
        assert isinstance(frame, pb.TailerReply)
        self.link.stamp(frame)
        return frame.link.seq

    def heard(self, number: int) -> None:
        self.link.acknowledged(number)

    def dies(self) -> None:
        self.end.broken()
        self.bench.die(self.session)


def test_an_outcome_that_was_said_and_not_heard_is_the_next_owners() -> None:
    # Given an owner with three items, of which one ended and was heard, and another one ended and was not
    bench = Bench()
    first = Owner(bench)
    bench.push(first.session, 1, 1, [5, 6, 7])
    out = {position: number for number, position in bench.sent().items()}
    bench.end(Outcomes([out[5]]))
    first.heard(first.told())
    bench.end(Outcomes([], {out[6]: Ended(Outcome.RETRY, "no")}))
    first.told()
    first.dies()
    # When another one asks, and shows the row
    taker = bench.session("taker")
    answer = bench.ask(taker, 1, 1)
    bench.core.adoptions.show(taker, ROW, 2, 2)
    # Then it has what runs and what was not heard, with its outcome
    assert positions(answer) == [6, 7]
    assert {number: end.reason for number, end in taker.ended.items()} == {refs(answer)[6]: "no"}
    assert not taker.succeeded


def test_an_owner_that_asks_twice_hands_over_once() -> None:
    # Given an owner all of whose items ended, with nobody there to hear
    bench = Bench()
    first = Owner(bench)
    bench.push(first.session, 1, 1, [5, 6])
    out = {position: number for number, position in bench.sent().items()}
    bench.end(Outcomes([out[5]]))
    first.told()
    bench.end(Outcomes([out[6]]))
    first.told()
    first.dies()
    # When two others ask, one after the other
    one, two = bench.session("one"), bench.session("two")
    assert positions(bench.ask(one, 1, 1)) == [5, 6]
    answer = bench.ask(two, 1, 1)
    bench.core.adoptions.show(two, ROW, 2, 2)
    # Then the one that has the row gets each outcome, once
    assert sorted(two.succeeded) == sorted(refs(answer).values()) and len(two.succeeded) == 2
    assert not one.succeeded and not first.session.succeeded


def test_an_owner_that_lives_hears_it_again() -> None:
    # Given an owner that was told of an outcome as its connection broke, and another one that asked
    bench = Bench()
    first = Owner(bench)
    bench.push(first.session, 1, 1, [7])
    bench.end(Outcomes(list(bench.sent())))
    first.told()
    first.dies()
    bench.ask(bench.session("taker"), 1, 1)
    # When it shows that it still has the row
    bench.core.tailer_connected(first.session)
    bench.core.adoptions.show(first.session, ROW, 1, 2)
    # Then it is told under the number that it knows, beside the frame that its link sends again
    assert first.session.succeeded == [ref(1, 0)]
    assert len(first.link.unacknowledged()) == 1


def test_an_item_that_was_handed_back_unstarted_is_nobodys() -> None:
    # Given an owner whose waiting item goes back to it, said and not heard
    bench = Bench(limit=1)
    first = Owner(bench)
    bench.push(first.session, 1, 1, [7, 8])
    running = bench.sent()
    bench.core.tailer_draining(first.session)
    assert first.session.ended[ref(1, 1)].outcome == Outcome.HELD
    first.told()
    first.dies()
    # When another one asks
    answer = bench.ask(bench.session("taker"), 1, 1)
    # Then it adopts what runs alone, and hands the other one out by itself
    assert positions(answer) == [7] and len(running) == 1


def test_what_is_kept_is_what_the_link_keeps() -> None:
    # Given an owner that hears everything, a frame late
    bench = Bench(limit=1)
    first = Owner(bench)
    number = 0
    for flight in range(1, 40):
        bench.push(first.session, flight, 1, [flight])
        bench.core.turn(bench.now, WALL)
        bench.end(Outcomes(list(bench.sent())))
        first.heard(number)
        number = first.told()
    # Then nothing is kept of what it heard
    assert len(first.session.unheard.take_back()) == 1 and not first.session.held.known()
