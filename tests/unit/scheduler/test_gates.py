"""Gates in the scheduler's core: the items that they give back, and the cells that they close to which sessions."""

from __future__ import annotations

from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.demand import Cell, Closed
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Kind, ref
from tailrace.scheduler.core import Core
from tailrace.scheduler.sessions import TailerSession

PAY = FunctionSpec("a", downstreams=("stripe",))


def push(made: Core, tailer: TailerSession, number: int, *kinds: Kind) -> list[int]:
    made.push(tailer, flight(number, *kinds), len(tailer.requests._sent) - 1, made.sizes.scheduler, 1.0)
    return [ref(number, index) for index in range(len(kinds))]


def how(tailer: TailerSession) -> dict[int, int]:
    return {each: end.outcome for each, end in tailer.ended.items()}


def test_a_source_that_is_paused_gets_back_what_waits_and_what_it_pushes_and_no_other_does() -> None:
    # Given two sources with items that wait, since all slots are taken
    made = core()
    worker = worker_of(made, limit=1)
    orders, mails = tailer_of(made, session="orders"), tailer_of(made, session="mails")
    first = push(made, orders, 1, Kind("a"), Kind("a"), Kind("b"))
    theirs = push(made, mails, 1, Kind("b"))
    made.turn(1.0, WALL)
    running = sent(made, worker, 1.0)
    assert [tailer for tailer, _ in running.values()] == [orders]
    # When one of them is paused
    made.apply([Gate("", "", "pause", "ann", "too much", source="orders")], [], [], 2, 1.0)
    later = push(made, orders, 2, Kind("a"))
    # Then what waits of it and what comes goes back held; what runs goes on, and the other source waits its turn
    out = {each for tailer, each in running.values() if tailer is orders}
    assert how(orders) == dict.fromkeys({*first, *later} - out, Outcome.HELD)
    assert not how(mails) and theirs
    # And it alone is told that everything is closed
    assert Closed("", reason="source orders is paused by ann: too much") in orders.closed
    assert not mails.closed
    # And when the gate is gone it may push again
    orders.ended = {}
    made.apply([], [], [], 3, 1.0)
    push(made, orders, 3, Kind("a"))
    assert not orders.closed and not how(orders)


def test_a_source_that_is_dropped_has_its_items_dropped_by_that_gate() -> None:
    made = core()
    worker_of(made)
    orders = tailer_of(made, session="orders")
    made.apply([Gate("", "", "drop", "ann", "test data", version=7, source="orders")], [], [], 7, 1.0)
    [item] = push(made, orders, 1, Kind("a"))
    end = orders.ended[item]
    assert end.outcome == Outcome.DROPPED
    assert end.dropped_by is not None and end.dropped_by[:3] == (7, "ann", "test data")


def test_a_downstream_that_is_paused_closes_the_functions_that_call_it_also_those_that_come_later() -> None:
    # Given a paused downstream that no function is known to call
    made = core()
    worker = worker_of(made)
    tailer = tailer_of(made)
    made.apply([Gate("", "", "pause", downstream="stripe")], [], [], 2, 1.0)
    waiting = push(made, tailer, 1, Kind("b"))
    assert not tailer.closed
    # When a function registers that does
    made.apply([Gate("", "", "pause", downstream="stripe")], [], [PAY], 3, 1.0)
    # Then it is closed, and what it has comes back
    assert {each.function for each in tailer.closed} == {"a"}
    [held] = push(made, tailer, 2, Kind("a", tenant="x"))
    assert how(tailer) == {held: Outcome.HELD}
    # And others run
    made.turn(1.0, WALL)
    assert [each for _, each in sent(made, worker, 1.0).values()] == waiting


def test_a_tenant_that_is_paused_is_so_in_every_function() -> None:
    made = core()
    worker_of(made, limit=1)
    tailer = tailer_of(made)
    items = push(made, tailer, 1, Kind("a", tenant="x"), Kind("b", 3, "x", "x"), Kind("b", tenant="y"), Kind("b"))
    made.apply([Gate("", "", "pause", tenant="x")], [], [], 2, 1.0)
    assert how(tailer) == {items[0]: Outcome.HELD, items[1]: Outcome.HELD}
    assert [(each.function, each.tenant) for each in tailer.closed] == [("", "x")]


def test_a_function_without_workers_is_dropped_too() -> None:
    # Given a function that somebody registered once, of which no worker is left, and a tailer without credit for it
    made = core()
    worker_of(made, names=("b",))
    tailer = tailer_of(made)
    made.apply([], [], [FunctionSpec("a")], 2, 1.0)
    assert not made.credits.get(Cell("a", 0))
    # When an operator drops it, Then there is credit to push its items, and they come back dropped
    made.apply([Gate("a", "", "drop", "ann", "broken")], [], [], 3, 1.0)
    assert 0 < made.credits[Cell("a", 0)] == tailer.cells[Cell("a", 0)] <= made.credits[Cell("b", 0)]
    [item] = push(made, tailer, 1, Kind("a"))
    assert how(tailer) == {item: Outcome.DROPPED}
    # And none when the gate is gone
    made.apply([], [], [], 4, 1.0)
    assert not made.credits.get(Cell("a", 0))


def test_what_is_clogged_and_dropped_is_not_told_to_be_tried_one_by_one() -> None:
    # Given a function that is clogged
    made = core()
    worker_of(made)
    tailer = tailer_of(made)
    clog = made.outages.closed["a"] = Closed("a", reason="503", probes=1, since=WALL)
    made.apply([], [], [], 2, 1.0)
    assert tailer.closed == {clog}
    # When it is dropped whole, Then tailers push all of it; but not where a part of it is
    made.apply([Gate("a", "", "drop")], [], [], 3, 1.0)
    assert tailer.closed is not None and [cell.drop for cell in tailer.closed] == [True]
    made.apply([Gate("a", "news", "drop")], [], [], 4, 1.0)
    assert clog in tailer.closed


def test_a_tailer_hears_of_what_is_dropped_only_where_that_decides() -> None:
    # Given a collection that is dropped, of a function that is paused
    made = core()
    worker_of(made)
    orders, mails = tailer_of(made, session="orders"), tailer_of(made, session="mails")
    gates = [Gate("a", "", "pause"), Gate("a", "news", "drop")]
    made.apply(gates, [], [PAY], 2, 1.0)
    assert orders.closed == mails.closed and {cell.drop for cell in orders.closed or ()} == {True, False}
    # When a source is paused, Then its tailer hears of no drop, and the other one does
    made.apply([*gates, Gate("", "", "pause", source="orders")], [], [], 3, 1.0)
    assert [any(cell.drop for cell in each.closed or ()) for each in (orders, mails)] == [False, True]
    # And of a downstream that the function calls no tailer does, since no gate is the more specific one
    made.apply([*gates, Gate("", "", "pause", downstream="stripe")], [], [], 4, 1.0)
    assert not any(cell.drop for each in (orders, mails) for cell in each.closed or ())
    [item] = push(made, mails, 1, Kind("a", collection="news"))
    assert how(mails) == {item: Outcome.HELD}
