"""Gates in the scheduler's core: what they give back, and to which sessions they close what."""

from __future__ import annotations

from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.model.demand import Closed
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
