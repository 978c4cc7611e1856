"""The fit of quotas to the workers that are attached and the items that run now."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.workload import Kind
from tailrace.scheduler.quota_fit import NAMED, Attached, attached, misfits
from tailrace.wire.v1 import scheduler_pb2 as pb

MAIL = FunctionSpec("mail", downstreams=("smtp",))
BOTH = frozenset({"mail", "report"})


def test_what_fits_is_not_mentioned() -> None:
    now = Attached([(BOTH, 10)], {Kind("mail"): 5})
    assert misfits([Quota("mail", concurrency=5, reserve=600)], [MAIL], now) == []
    assert misfits([], [MAIL], Attached()) == []


def test_reserves_beyond_the_slots_of_all_are_told_once() -> None:
    quotas = [Quota("mail", reserve=600), Quota(tenant="acme", reserve=60)]
    [found] = misfits(quotas, [MAIL], Attached([(BOTH, 10)]))
    assert "come to 11 slots" in found and "attached now have 10" in found
    [found] = misfits(quotas, [MAIL], Attached())
    assert "attached now have 0" in found


def test_a_reserve_beyond_the_slots_that_run_its_function_is_told_though_there_are_others() -> None:
    now = Attached([(frozenset({"mail"}), 2), (frozenset({"report"}), 100)])
    quotas = [Quota("mail", reserve=120), Quota("mail", tenant="acme", reserve=60)]
    [found] = misfits(quotas, [MAIL], now)
    assert found.startswith("function mail: its reserves come to 3 slots, and 2 of the slots")


def test_each_limit_that_is_below_what_runs_is_told_the_worst_first() -> None:
    running = {Kind("mail", 2, "", "acme"): 6, Kind("mail", 0, "news", "bob"): 3, Kind("report"): 1}
    quotas = [
        Quota("mail", concurrency=8),
        Quota(tenant="acme", concurrency=2),
        Quota(downstream="smtp", concurrency=9),
        Quota("mail", collection="news", concurrency=2),
        Quota(per="tenant", concurrency=1),
        Quota("report", rate=0.1),
    ]
    found = misfits(quotas, [MAIL], Attached([(BOTH, 20)], running))
    assert [each.partition(":")[0] for each in found] == [
        "tenant acme",
        "tenant bob",
        "function mail",
        "function mail × collection news",
    ]
    assert "6 run now or are about to, and its concurrency would be 2" in found[0]
    assert "until 5 have ended" in found[0]


def test_of_very_many_limits_the_worst_are_named_and_the_rest_counted() -> None:
    running = {Kind("mail", 2, "", f"t{number}"): 2 for number in range(NAMED + 30)}
    found = misfits([Quota(per="tenant", concurrency=1)], [MAIL], Attached([(BOTH, 999)], running))
    assert len(found) == NAMED + 1
    assert found[-1] == "30 more limits would be below the items that run now"


def test_a_worker_that_leaves_and_places_for_the_exception_count_for_nothing() -> None:
    reply = pb.InspectReply()
    for connected, draining, alone in ((True, False, False), (True, False, True), (True, True, False), (False,) * 3):
        worker = reply.workers.add(connected=connected, draining=draining)
        worker.pools.add(functions=["mail"], slots=4, alone=alone)
    reply.running.add(function="mail", priority=1, tenant="acme", items=3)
    now = attached(reply)
    assert (now.slots, now.slots_of("mail"), now.slots_of("report")) == (4, 4, 0)
    assert now.running == {Kind("mail", 1, "", "acme"): 3}
