"""Every way a run can end, in a real executor process, as the scheduler hears of it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Extra


async def test_results_come_back_from_async_and_plain_functions(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("add", {"a": 1}, {"a": 2, "b": 3}) + scheduler.assign("add_plain", {"a": 5})
    ends = await scheduler.ended(*refs)
    assert [(end.outcome, end.result) for end in ends] == [(1, b"2"), (1, b"5"), (1, b"6")]


async def test_results_nobody_wants_are_not_sent(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("add", {"a": 1}, wants_result=False)
    assert (await scheduler.ended(*refs))[0].result is None


async def test_a_full_flight_ends(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("nothing", *[{}] * 1024) + scheduler.assign("nothing_plain", *[{}] * 500)
    assert {end.outcome for end in await scheduler.ended(*refs)} == {Outcome.SUCCESS}


async def test_the_context_knows_the_run(start: Any) -> None:
    scheduler, _ = await start()
    extra = Extra(key="k", headers=(("trace", "abc"),), crashes=1, progress="half")
    refs = scheduler.assign("facts", {}, {}, extras={1: extra})
    _, end = await scheduler.ended(*refs)
    assert json.loads(end.result) == {
        "id": "w1.1",
        "attempt": 2,
        "fence": 101,
        "collection": "some",
        "tenant": "acme",
        "headers": [["trace", "abc"]],
        "crashes": 1,
        "key": "k",
        "before": "half",
    }


BAD_LUCK = [
    ("value", Outcome.RETRY, "ValueError: no good"),
    ("exit", Outcome.RETRY, "SystemExit: 3"),
    ("interrupt", Outcome.RETRY, "KeyboardInterrupt"),
    ("generator", Outcome.RETRY, "GeneratorExit"),
    ("base", Outcome.RETRY, "BaseException: bare"),
    ("cancelled", Outcome.RETRY, "asyncio.exceptions.CancelledError"),
    ("cancels_itself", Outcome.SUCCESS, ""),
    ("later", Outcome.RETRY, "not yet"),
    ("later_badly", Outcome.RETRY, "not yet ('soon' is not a duration"),
    ("fatal", Outcome.FATAL, "never"),
    ("throttled", Outcome.THROTTLED, "throttled by api"),
    ("object", Outcome.FATAL, "the return value cannot be written as JSON"),
    ("large", Outcome.FATAL, "the return value has 2000002 bytes"),
    ("text", Outcome.RETRY, "_Untellable: (its text cannot be shown)"),
    ("long", Outcome.RETRY, "ValueError: xxx"),
    ("child_exits", Outcome.SUCCESS, ""),
]


async def test_whatever_a_function_does_is_classified_and_the_others_go_on(start: Any) -> None:
    scheduler, worker = await start()
    before = worker.executor_pids
    refs = scheduler.assign("fail", *[{"kind": kind} for kind, _, _ in BAD_LUCK])
    others = scheduler.assign("add", *[{"a": number} for number in range(200)])
    for (kind, outcome, reason), end in zip(BAD_LUCK, await scheduler.ended(*refs), strict=True):
        assert (kind, end.outcome) == (kind, outcome)
        assert reason in end.reason
        assert len(end.reason) <= 2048
        assert not end.crashed
    assert scheduler.ends[refs[7]].after == 300.0
    assert scheduler.ends[refs[10]].after == 3.0
    assert "worker_functions.py" in scheduler.ends[refs[0]].reason
    assert {end.outcome for end in await scheduler.ended(*others)} == {Outcome.SUCCESS}
    assert worker.executor_pids == before


async def test_bad_luck_of_plain_functions(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("fail_plain", {"kind": "exit"}, {"kind": "stop"}, {"kind": "object"})
    ends = await scheduler.ended(*refs)
    assert [end.outcome for end in ends] == [Outcome.RETRY, Outcome.RETRY, Outcome.FATAL]


async def test_a_payload_that_does_not_fit_is_fatal_and_says_why(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("add", {"a": "many"}, {"c": 1})
    first, second = await scheduler.ended(*refs)
    assert (first.outcome, second.outcome) == (Outcome.FATAL, Outcome.FATAL)
    assert "argument 'a': expected a valid integer" in first.reason
    assert "argument 'a' is missing" in second.reason


async def test_context_variables_do_not_leak_into_the_next_item(start: Any) -> None:
    scheduler, _ = await start(slots=1)
    refs = scheduler.assign("sees_clean_context", *[{}] * 10)
    assert {end.result for end in await scheduler.ended(*refs)} == {b"0"}


async def test_an_item_that_expired_while_it_waited_does_not_start(start: Any) -> None:
    scheduler, _ = await start()
    refs = scheduler.assign("add", {"a": 1}, {"a": 2}, extras={0: Extra(expires_at=1.0)})
    assert [end.outcome for end in await scheduler.ended(*refs)] == [Outcome.EXPIRED, Outcome.SUCCESS]


@pytest.mark.parametrize("function", ["waits", "waits_plain"])
async def test_an_item_that_expires_in_its_executor_does_not_start(start: Any, journal: Any, function: str) -> None:
    # Given one that runs and one behind it, whose deadline is soon
    scheduler, _ = await start(slots=1, threads=1)
    arguments = {"journal": journal.name}
    extras = {1: Extra(expires_at=time.time() + 0.3)}
    refs = scheduler.assign(function, arguments | {"name": "1"}, arguments | {"name": "2"}, extras=extras)
    await journal.until("start 1")
    # When the first ends after that
    await asyncio.sleep(0.4)
    journal.go()
    assert [end.outcome for end in await scheduler.ended(*refs)] == [Outcome.SUCCESS, Outcome.EXPIRED]
    assert "start 2" not in journal.lines()


async def test_timeouts_cancel_and_spend_an_attempt(start: Any) -> None:
    scheduler, worker = await start()
    before = worker.executor_pids
    (end,) = await scheduler.ended(*scheduler.assign("times_out", {}))
    assert (end.outcome, end.reason) == (Outcome.RETRY, "timed out after 200ms")
    assert worker.executor_pids == before


@pytest.mark.parametrize("function", ["ignores_its_timeout", "times_out_plain"])
async def test_what_ignores_its_timeout_is_ended_with_its_process(start: Any, journal: Any, function: str) -> None:
    scheduler, worker = await start(timeout_grace=0.3)
    before = worker.executor_pids
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    refs = scheduler.assign(function, {})
    culprit, other = await scheduler.ended(*refs, *neighbour)
    assert (culprit.outcome, culprit.reason) == (Outcome.RETRY, "timed out after 200ms")
    assert (other.outcome, other.crashed) == (Outcome.LOST, False)
    assert "after its timeout" in other.reason
    assert (await scheduler.ended(*scheduler.assign("add", {"a": 1})))[0].result == b"2"
    assert worker.executor_pids != before


@pytest.mark.parametrize("function", ["blocks", "blocks_in_child"])
async def test_what_blocks_the_loop_is_the_culprit(start: Any, journal: Any, function: str) -> None:
    scheduler, _ = await start(loop_block_limit=0.5)
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    refs = scheduler.assign(function, {"journal": journal.name})
    culprit, other = await scheduler.ended(*refs, *neighbour)
    assert culprit.outcome == Outcome.RETRY
    assert culprit.reason.startswith("blocked the event loop for 500ms")
    assert (other.outcome, other.crashed) == (Outcome.LOST, False)


async def test_what_blocks_the_loop_outside_of_a_task_makes_all_that_runs_a_suspect(start: Any, journal: Any) -> None:
    """The callback is nobody's; a suspect that is counted as nobody's would come back and block for ever."""
    scheduler, _ = await start(loop_block_limit=0.5)
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    refs = scheduler.assign("blocks_in_callback", {"journal": journal.name})
    for end in await scheduler.ended(*refs, *neighbour):
        assert (end.outcome, end.crashed) == (Outcome.LOST, True)
        assert end.reason.startswith("the process had its event loop blocked while it ran, with 1 others running")


async def test_cancelled_by_its_owner(start: Any, journal: Any) -> None:
    scheduler, _ = await start(threads=1)
    refs = scheduler.assign("waits", {"journal": journal.name, "name": "a"})
    plain = scheduler.assign("waits_plain", *[{"journal": journal.name, "name": f"p{index}"} for index in range(2)])
    await asyncio.gather(journal.until("start a"), journal.until("start p0"))
    scheduler.cancel(*refs, *plain)
    first, second, third = await scheduler.ended(*refs, *plain)
    assert first.outcome == Outcome.CANCELLED
    assert second.result == b"true"  # it saw ctx.cancelled and ended by itself
    assert third.outcome == Outcome.CANCELLED
    assert "cancelled a" in journal.lines()
    assert "start p1" not in journal.lines()


async def test_a_cancelled_isolated_run_is_ended_with_its_process(start: Any, journal: Any) -> None:
    scheduler, _ = await start(pools=True)
    refs = scheduler.assign("stuck_alone", {"journal": journal.name})
    await journal.until("start")
    scheduler.cancel(*refs)
    assert (await scheduler.ended(*refs))[0].outcome == Outcome.CANCELLED
    assert (await scheduler.ended(*scheduler.assign("pid_alone", {})))[0].outcome == Outcome.SUCCESS


async def test_progress_notes_reach_the_scheduler(start: Any, journal: Any) -> None:
    scheduler, _ = await start()
    (item,) = scheduler.assign("waits", {"journal": journal.name, "name": "a"})
    await scheduler.until(lambda: scheduler.notes.get(item) == "waiting a")
    journal.go()
    assert (await scheduler.ended(item))[0].progress == "waiting a"


SPENT = (("api", "tokens", 812.0), ("api", "rows", 3.0))


@pytest.mark.parametrize("name", ["spends", "spends_plain", "spends_alone"])
async def test_what_a_run_used_is_told_with_its_end_however_it_ends(start: Any, name: str) -> None:
    scheduler, _ = await start(pools=name == "spends_alone")
    refs = scheduler.assign(name, *[{"how": how} for how in ("silent", "returns", "raises", "badly", "silent")])
    silent, returns, raises, badly, last = await scheduler.ended(*refs)
    assert (silent.outcome, silent.result, silent.used) == (Outcome.SUCCESS, None, SPENT) == (1, None, last.used)
    assert (returns.outcome, returns.result, returns.used) == (Outcome.SUCCESS, b'"told"', SPENT)
    assert (raises.outcome, raises.used) == (Outcome.RETRY, SPENT) and "after it was used" in raises.reason
    assert (badly.outcome, badly.used) == (Outcome.RETRY, SPENT) and "expected how much was used" in badly.reason


async def test_a_result_that_nobody_wants_does_not_travel_with_what_was_used(start: Any) -> None:
    scheduler, _ = await start()
    [end] = await scheduler.ended(*scheduler.assign("spends", {"how": "returns"}, wants_result=False))
    assert (end.outcome, end.result, end.used) == (Outcome.SUCCESS, None, SPENT)


async def test_what_is_said_after_the_end_is_said_to_nobody(start: Any) -> None:
    scheduler, _ = await start()
    [end] = await scheduler.ended(*scheduler.assign("spends", {"how": "later"}))
    others = await scheduler.ended(*scheduler.assign("add", *[{"a": number} for number in range(50)]))
    assert end.used == SPENT
    assert {other.used for other in others} == {()}


async def test_a_run_that_its_timeout_ends_has_told_what_it_used(start: Any) -> None:
    scheduler, _ = await start()
    [end] = await scheduler.ended(*scheduler.assign("spends", {"how": "times_out"}))
    assert (end.outcome, end.used) == (Outcome.RETRY, SPENT) and "timed out" in end.reason


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
async def test_functions_that_print_where_nothing_can_be_written_succeed(apart: Any) -> None:
    # Given a worker whose standard error is on a full disk
    with Path("/dev/full").open("wb", buffering=0) as full:
        scheduler, _ = await apart(stderr=full)
        # When functions print more than is gathered, again and again
        refs = [*scheduler.assign("prints", *[{"size": 9_000}] * 3), *scheduler.assign("prints_plain", {"size": 9_000})]
        # Then none of them fails for it
        assert {end.outcome for end in await scheduler.ended(*refs)} == {Outcome.SUCCESS}
