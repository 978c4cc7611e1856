"""Holds: all that keeps a kind from starting is told, in order, with its numbers and its end where that is known."""

from __future__ import annotations

from unit.scheduler.test_gates import push
from unit.scheduler.test_scheduler_core import WALL, core, sent, tailer_of, worker_of

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota
from tailrace.model.workload import Kind
from tailrace.scheduler.holds import holds
from tailrace.scheduler.rules.explain import Reason
from tailrace.scheduler.view import explain, explain_kind


def test_everything_that_holds_a_kind_is_told_in_the_order_in_which_it_meets_it() -> None:
    # Given a full worker, a tenant at its concurrency, a downstream at its rate, and a gate that ends
    made = core()
    worker = worker_of(made, limit=2)
    tailer = tailer_of(made)
    spec = FunctionSpec("a", downstreams=("stripe",))
    quotas = [Quota(tenant="x", concurrency=2), Quota(downstream="stripe", rate=0.5, burst=2.0)]
    made.apply([], quotas, [spec], 1, 1.0)
    push(made, tailer, 1, *[Kind("a", tenant="x")] * 3)
    made.turn(1.0, WALL)
    assert len(sent(made, worker, 1.0)) == 2
    made.apply([Gate("", "", "pause", "ann", "a check", tenant="x", until=WALL + 60)], quotas, [spec], 2, 1.0)
    # When it is asked why nothing more starts
    found = holds(made, Kind("a", tenant="x"), "t", 1.0, WALL)
    # Then each of them is named, with how full it is, who has it and until when
    assert [hold.reason for hold in found] == [Reason.PAUSED, Reason.RATE, Reason.CONCURRENCY, Reason.WORKERS_FULL]
    by_reason = {hold.reason: hold for hold in found}
    assert by_reason[Reason.PAUSED].ends_at == WALL + 60
    assert "a check" in by_reason[Reason.PAUSED].detail
    assert "2 of 2 run" in by_reason[Reason.CONCURRENCY].detail
    assert "running: 2 of a for x" in by_reason[Reason.CONCURRENCY].detail
    assert by_reason[Reason.CONCURRENCY].ends_at == 0.0  # nobody knows when a run ends
    assert by_reason[Reason.RATE].ends_at == WALL + 2.0
    assert "2 of 2 places are taken" in by_reason[Reason.WORKERS_FULL].detail


def test_an_item_that_waits_is_told_all_of_it_too_and_what_is_before_it() -> None:
    made = core()
    worker = worker_of(made, limit=1)
    tailer = tailer_of(made)
    made.apply([], [Quota("a", 1)], [], 1, 1.0)
    push(made, tailer, 1, Kind("a"), Kind("a"), Kind("a"))
    push(made, tailer, 2, Kind("b"), Kind("b"))
    made.turn(1.0, WALL)
    assert len(sent(made, worker, 1.0)) == 1
    reply = explain(made, "1-2", 1.0, WALL)
    assert (reply.state, reply.reason, reply.ahead) == ("waiting", "concurrency", 1)
    assert [hold.reason for hold in reply.holds] == ["concurrency", "workers_full", "turn"]
    assert "beside it wait 2 of b" in reply.holds[1].detail
    assert "1 item came before it" in reply.holds[2].detail


def test_where_nothing_holds_a_kind_that_is_said() -> None:
    made = core()
    worker_of(made)
    tailer_of(made)
    reply = explain_kind(made, Kind("a"), "", 1.0, WALL)
    assert (reply.known, reply.reason, list(reply.holds)) == (True, "turn", [])
    assert "nothing holds it here" in reply.detail


def test_of_a_function_that_no_worker_runs_it_is_said_what_is_known_of_it() -> None:
    made = core()
    worker_of(made, names=("b",))
    made.apply([], [], [FunctionSpec("mail", "v7")], 1, 1.0)
    known = holds(made, Kind("mail"), "", 1.0, WALL)
    assert [hold.reason for hold in known] == [Reason.NO_WORKER]
    assert "version v7" in known[0].detail and "workers here that do not: w" in known[0].detail
    [unknown] = holds(made, Kind("mial"), "", 1.0, WALL)
    assert "nobody ever registered 'mial'" in unknown.detail


def test_of_a_function_that_workers_have_and_cannot_run_it_is_said_what_they_lack() -> None:
    made = core()
    worker_of(made, names=("b",)).unable = {"train": "gpu (it has no such label)"}
    made.apply([], [], [FunctionSpec("train")], 1, 1.0)
    [known] = holds(made, Kind("train"), "", 1.0, WALL)
    assert known.reason is Reason.NO_WORKER and "w does not meet gpu (it has no such label)" in known.detail
    assert "that do not" not in known.detail and "no worker is connected" not in known.detail
