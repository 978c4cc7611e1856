"""Adoption in the core, case by case: a dead owner's attempts become the next owner's."""

from __future__ import annotations

from scenes.adoption_bench import KEPT, ROW, SIZES, WALL, Bench, positions, refs

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Flight, Kind, Outcomes, Owned, ref
from tailrace.scheduler.endpoints import TailerEnd
from tailrace.wire.link import Link


def test_what_runs_becomes_the_takers_and_ends_there() -> None:
    # Given an owner with an item running and one waiting, which dies
    bench = Bench(limit=1)
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7, 8])
    running = bench.sent()
    bench.die(first)
    # When another one asks, takes, and shows the row
    taker = bench.session("taker")
    answer = bench.ask(taker, 1, 1)
    bench.core.adoptions.show(taker, ROW, 2, 3)
    # Then it has what runs under its old fence, and what waited started nowhere
    assert not answer.refused and positions(answer) == [7] and answer.flights[0].fence == 101
    assert answer.until == SIZES.scheduler
    bench.core.turn(bench.now, WALL)
    assert not bench.sent()
    # And its outcome is the taker's alone
    bench.end(Outcomes(list(running)))
    assert taker.succeeded == [refs(answer)[7]] and not first.succeeded
    assert not taker.held.flights and taker.held.items == 0


def test_what_is_set_aside_ends_with_its_leases_unless_its_owner_is_back() -> None:
    # Given two owners with an item each that runs, which lose their connections
    for back in (True, False):
        bench = Bench()
        first = bench.owner("first", 1, 1)
        bench.push(first, 1, 1, [7])
        running = bench.sent()
        assert bench.core.adoptions.set_aside(ROW, 1, 1, KEPT, WALL).refused, "its owner is connected"
        bench.die(first)
        # When somebody without a session asks, then it hears what runs, and how long
        answer = bench.core.adoptions.set_aside(ROW, 1, 1, KEPT, WALL)
        assert positions(answer) == [7] and answer.until == SIZES.scheduler
        again = bench.core.adoptions.set_aside(ROW, 1, 1, KEPT, WALL)
        assert positions(again) == [7], "an answer may be lost"
        if back:
            # And an owner that lives and shows a newer version has it again
            bench.core.adoptions.show(first, ROW, 1, 2)
            bench.end(Outcomes(list(running)))
            assert first.succeeded == [ref(1, 0)]
        else:
            # And otherwise it is stopped when its lease is over, whoever takes the row
            bench.core.adoptions.show(bench.session("other"), ROW, 2, 3)
            assert bench.worker.revoked == set(running)


def test_how_it_ended_that_was_set_aside_waits_for_whoever_asks_in_a_session() -> None:
    # Given an owner that died, whose item was set aside
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    running = bench.sent()
    bench.die(first)
    bench.core.adoptions.set_aside(ROW, 1, 1, KEPT, WALL)
    # When it ends before anybody has asked in a session
    bench.end(Outcomes(list(running)))
    bench.core.tick(bench.now, WALL)
    side = bench.session("side")
    answer = bench.ask(side, 1, 1)
    bench.core.adoptions.show(side, ROW, 2, 2)
    # Then its outcome is that one's
    assert positions(answer) == [7] and side.succeeded == [refs(answer)[7]]
    # And what nobody asks for is forgotten in time
    bench.die(side)
    bench.core.adoptions.set_aside(ROW, 2, 2, KEPT, WALL)
    assert bench.core.adoptions._rows[ROW].limbo is not None
    bench.core.tick(KEPT, WALL)
    assert bench.core.adoptions._rows[ROW].limbo is None


def test_an_owner_is_there_while_any_of_its_sessions_is() -> None:
    # Given an owner with two sessions, of which the one that showed the row last is gone
    bench = Bench()
    side = bench.owner("side", 1, 1)
    own = bench.owner("own", 1, 2)
    late = bench.owner("late", 1, 2)
    bench.die(own)
    # Then nobody adopts what it has, until they are all gone
    assert bench.ask(bench.session("taker"), 1, 2).refused
    bench.die(side)
    assert bench.ask(bench.session("taker"), 1, 2).refused
    bench.die(late)
    assert not bench.ask(bench.session("taker"), 1, 2).refused


def test_what_runs_of_a_flight_over_several_parts_is_named_part_by_part() -> None:
    # Given an owner with a flight of two parts, of which one item ended before its owner died
    bench = Bench(limit=5)
    first = bench.owner("first", 1, 1)
    kinds, ids = [Kind("f")] * 4, ["7", "8", "7", "9"]
    owned = Owned(*ROW, 1, "", [7, 8, 7, 9], [("a", 2), ("b", 2)])
    flight = Flight(1, 101, kinds, ids, [b""] * 4, [1] * 4, owned=owned)
    bench.core.push(first, flight, first.requests.send(bench.now), SIZES.scheduler, bench.now)
    bench.core.turn(bench.now, WALL)
    running = bench.sent()
    bench.end(Outcomes([min(running)]))
    link = Link()
    end = TailerEnd(bench.core, first, link, SYSTEM_CLOCK, lambda: None)
    frame = end.compose()
    assert frame is not None
    link.stamp(frame)
    link.acknowledged(frame.link.seq)
    end.broken()
    bench.die(first)
    # When another one asks
    answer = bench.ask(bench.session("taker"), 1, 1)
    # Then it hears where each of the others is, under one number
    assert [(each.part, each.indexes, each.positions) for each in answer.flights] == [
        ("a", [1], [8]),
        ("b", [2, 3], [7, 9]),
    ]
    assert len({each.number for each in answer.flights}) == 1


def test_renewals_of_what_was_adopted_come_from_the_taker() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    bench.sent()
    bench.die(first)
    taker = bench.session("taker")
    answer = bench.ask(taker, 1, 1)
    bench.core.adoptions.show(taker, ROW, 2, 2)
    bench.now = 20.0
    bench.renew(taker, [flight.number for flight in answer.flights])
    assert bench.grants() == {first.group: SIZES.granted_to_worker}, "the worker knows the group by its first number"
    bench.now = 60.0
    bench.core.tick(bench.now, WALL)
    assert bench.worker.revoked, "nobody renewed it since"


def test_until_a_newer_version_is_shown_nothing_of_the_old_epoch_counts() -> None:
    # Given an owner that only lost its connection, and another one that asked
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    running = bench.sent()
    bench.die(first)
    answer = bench.ask(bench.session("taker"), 1, 1)
    assert positions(answer) == [7]
    # When the owner is back, its pushes return and its renewals do nothing
    bench.core.tailer_connected(first)
    bench.push(first, 2, 1, [8])
    assert first.ended[ref(2, 0)].outcome == Outcome.HELD and first.barred == {ROW: 1}
    bench.now = 20.0
    bench.renew(first, [1])
    assert bench.grants()[first.group] < SIZES.worker / 2
    # Until it shows that it still owns the row: then what ran is its again, under the number it knew
    bench.core.adoptions.show(first, ROW, 1, 2)
    bench.renew(first, [1])
    assert bench.grants() == {first.group: SIZES.granted_to_worker}
    bench.end(Outcomes(list(running)))
    assert first.succeeded == [ref(1, 0)]


def test_what_ended_while_nobody_could_be_told_goes_to_whoever_shows_the_row() -> None:
    for shower, epoch in (("taker", 2), ("first", 1)):
        bench = Bench()
        first = bench.owner("first", 1, 1)
        bench.push(first, 1, 1, [5, 6, 7])
        out = {position: number for number, position in bench.sent().items()}
        bench.die(first)
        bench.end(Outcomes([out[5]]))  # before anybody asked
        taker = bench.session("taker")
        answer = bench.ask(taker, 1, 1)
        assert positions(answer) == [5, 6, 7]
        bench.end(Outcomes([], {out[6]: Ended(Outcome.RETRY, "no")}))  # in limbo
        bench.core.adoptions.show(taker if shower == "taker" else first, ROW, epoch, 2)
        bench.end(Outcomes([out[7]]))
        theirs, other = (taker, first) if shower == "taker" else (first, taker)
        mine = refs(answer) if shower == "taker" else {5: ref(1, 0), 6: ref(1, 1), 7: ref(1, 2)}
        assert theirs.succeeded == [mine[5], mine[7]] and list(theirs.ended) == [mine[6]]
        assert not other.succeeded and not other.ended


def test_a_flight_that_ended_whole_while_its_owner_was_away_is_adopted_too() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [5])
    out = bench.sent()
    bench.die(first)
    bench.end(Outcomes(list(out)))
    taker = bench.session("taker")
    answer = bench.ask(taker, 1, 1)
    assert positions(answer) == [5]
    bench.core.adoptions.show(taker, ROW, 2, 2)
    assert taker.succeeded == [refs(answer)[5]]


def test_what_a_worker_handed_back_unstarted_is_told_to_who_was_told_it_runs() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [5])
    out = bench.sent()
    bench.die(first)
    taker = bench.session("taker")
    answer = bench.ask(taker, 1, 1)
    bench.end(Outcomes([], {next(iter(out)): Ended(Outcome.HELD, "draining")}))
    bench.core.adoptions.show(taker, ROW, 2, 2)
    assert taker.ended[refs(answer)[5]].outcome == Outcome.HELD


def test_an_owner_that_is_connected_is_not_adopted_from() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    assert bench.ask(bench.session("taker"), 1, 1).refused
    bench.push(first, 2, 1, [8])
    assert not first.ended


def test_who_read_an_older_version_is_refused() -> None:
    bench = Bench()
    bench.die(bench.owner("first", 1, 5))
    assert bench.ask(bench.session("taker"), 1, 4).refused


def test_what_is_being_stopped_is_not_adopted() -> None:
    # Given an item whose lease is over and that was told to stop
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    out = bench.sent()
    bench.die(first)
    bench.now = 28.5
    bench.core.tick(bench.now, WALL)
    taker = bench.session("taker")
    # Then nobody can adopt it, nor start another one beside it, until it is known to have ended
    assert bench.ask(taker, 1, 1).refused
    bench.now = 33.0
    bench.core.tick(bench.now, WALL)
    assert bench.ask(taker, 1, 1).refused, "the session is forgotten, but its item may still run"
    bench.end(Outcomes([], {next(iter(out)): Ended(Outcome.CANCELLED)}))
    assert not bench.ask(taker, 1, 1).refused


def test_a_scheduler_that_was_never_shown_the_row_confirms_and_bars_its_late_owner() -> None:
    bench = Bench()
    taker = bench.session("taker")
    assert bench.ask(taker, 1, 5).refused == ""
    late = bench.owner("late", 1, 5)
    bench.push(late, 1, 1, [7])
    assert late.ended[ref(1, 0)].outcome == Outcome.HELD and not bench.sent()


def test_a_push_without_its_row_shown_goes_back() -> None:
    bench = Bench()
    tailer = bench.session("first")
    bench.push(tailer, 1, 1, [7])
    assert tailer.ended[ref(1, 0)].outcome == Outcome.HELD and tailer.barred == {ROW: 0}


def test_a_taker_that_dies_before_it_shows_the_row_leaves_all_of_it_to_the_next() -> None:
    # Given two who asked one after the other, the first of whom took and died before it could show it
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7, 8])
    out = {position: number for number, position in bench.sent().items()}
    bench.die(first)
    second = bench.session("second")
    bench.ask(second, 1, 1)
    bench.end(Outcomes([out[8]]))
    bench.die(second)
    # When a third asks about the row as the second left it
    third = bench.session("third")
    answer = bench.ask(third, 2, 3)
    bench.core.adoptions.show(third, ROW, 3, 5)
    # Then everything is its
    bench.end(Outcomes([out[7]]))
    assert positions(answer) == [7, 8] and sorted(third.succeeded) == sorted(refs(answer).values())


def test_a_taker_that_dies_after_it_adopted_is_adopted_from() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    out = bench.sent()
    bench.die(first)
    second = bench.session("second")
    bench.ask(second, 1, 1)
    bench.core.adoptions.show(second, ROW, 2, 3)
    bench.push(second, 1, 2, [8])
    out |= bench.sent()
    bench.die(second)
    third = bench.session("third")
    answer = bench.ask(third, 2, 3)
    bench.core.adoptions.show(third, ROW, 3, 5)
    bench.end(Outcomes(list(out)))
    assert positions(answer) == [7, 8] and sorted(third.succeeded) == sorted(refs(answer).values())


def test_a_new_owner_that_did_not_ask_gets_nothing_and_what_was_in_limbo_is_stopped() -> None:
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    out = bench.sent()
    bench.die(first)
    bench.ask(bench.session("asker"), 1, 1)
    waited = bench.owner("waited", 2, 3)
    assert bench.worker.revoked == set(out) and not waited.held.flights
    bench.end(Outcomes(list(out)))
    assert not waited.succeeded


def test_what_is_stopped_at_its_leases_end_comes_back_lost_not_cancelled() -> None:
    # Given an owner whose renewals did not arrive for a whole lease although it lives
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    out = bench.sent()
    bench.now = 28.5
    bench.core.tick(bench.now, WALL)
    assert bench.worker.cancel
    # When the worker says that it was cancelled
    bench.end(Outcomes([], {next(iter(out)): Ended(Outcome.CANCELLED, "cancelled")}))
    # Then its tailer, which asked for no such thing, hears that it is to be handed out again
    assert first.ended[ref(1, 0)].outcome == Outcome.LOST


def test_a_worker_whose_session_cannot_go_on_is_waited_out() -> None:
    # Given a worker that runs something and said what cannot be right, so that its session ended
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.push(first, 1, 1, [7])
    bench.sent()
    bench.core.break_worker(bench.worker, 1.0)
    # When it attaches again under the same name
    bench.core.attach_worker("w", "w", 1.0)
    bench.core.tick(2.0, WALL)
    # Then what it ran is lost only when it cannot run any more
    assert not first.ended
    until = bench.worker.granted.over
    assert until > SIZES.worker
    bench.core.tick(until - 0.01, WALL)
    assert not first.ended
    bench.core.tick(until, WALL)
    assert first.ended[ref(1, 0)].outcome == Outcome.LOST
