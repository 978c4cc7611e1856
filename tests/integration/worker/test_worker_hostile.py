"""Hostile errors and results of a function end its own item, once, and nobody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.outcome import Outcome

HOSTILE = str(Path(__file__).with_name("hostile_functions.py"))

DEEDS = [
    ("surrogate", Outcome.RETRY, "ValueError: half of a pair: \\udcff", None),
    ("markup", Outcome.FATAL, "no <b>more</b>", None),
    ("fatal_error", Outcome.FATAL, "KeyError: 'missing'", None),
    ("later_error", Outcome.RETRY, "OSError: away", 3.0),
    ("later_text", Outcome.RETRY, "busy", 300.0),
    ("later_huge", Outcome.RETRY, "busy (1000000", None),
    ("later_infinite", Outcome.RETRY, "busy (inf is not a duration", None),
    ("later_beyond", Outcome.RETRY, "busy (1e+300 is too long", None),
    ("throttled", Outcome.THROTTLED, "throttled by \\udcff (nan is not a duration", None),
    ("liar", Outcome.RETRY, "hostile_functions.Liar: (its text cannot be shown)", None),
    ("fatal_liar", Outcome.FATAL, "(its text cannot be shown)", None),
    ("unnamed", Outcome.RETRY, "an exception: x", None),
    ("group", Outcome.RETRY, "BaseExceptionGroup: all (2 sub-exceptions)", None),
    ("endless", Outcome.FATAL, "the return value cannot be written as JSON", None),
    ("odd", Outcome.SUCCESS, "", None),
    ("generator", Outcome.FATAL, "the return value cannot be written as JSON", None),
    ("half", Outcome.FATAL, "the return value cannot be written as JSON", None),
    ("deep", Outcome.FATAL, "the return value cannot be written as JSON", None),
    ("variable", Outcome.SUCCESS, "", None),
]


@pytest.mark.parametrize("function", ["acts", "acts_plain"])
async def test_each_ends_once_by_what_it_did_and_the_innocent_end_well(start: Any, function: str) -> None:
    # Given few slots and threads, so that one that is lost is missed
    scheduler, worker = await start(files=[HOSTILE], slots=2, threads=2)
    before = worker.executor_pids
    # When the hostile run among others, more often than there are slots
    refs = [scheduler.assign(function, *[{"kind": kind} for kind, *_ in DEEDS]) for _ in range(4)]
    others = scheduler.assign("counts", *[{"upto": number} for number in range(20)])
    # Then each ended as the table of endings says
    for some in refs:
        for (kind, outcome, reason, after), end in zip(DEEDS, await scheduler.ended(*some), strict=True):
            assert (kind, end.outcome, end.after) == (kind, outcome, after)
            assert end.reason.startswith(reason), kind
            assert len(end.reason) <= 2048
    assert [end.result for end in await scheduler.ended(*others)] == [b"%d" % number for number in range(20)]
    assert worker.executor_pids == before


async def test_a_note_that_cannot_be_sent_is_made_plain(start: Any, journal: Any) -> None:
    scheduler, _ = await start(files=[HOSTILE])
    refs = scheduler.assign("notes", {"journal": journal.name, "note": "\\udcff"})
    await scheduler.until(lambda: scheduler.notes.get(refs[0]) == "\\udcff two")
    journal.go()
    (end,) = await scheduler.ended(*refs)
    assert end.outcome == Outcome.SUCCESS


async def test_a_runner_that_a_function_cancels_later_is_replaced(start: Any) -> None:
    # Given as many of them as there are slots, several times
    scheduler, worker = await start(files=[HOSTILE], slots=2)
    before = worker.executor_pids
    for _ in range(3):
        await scheduler.ended(*scheduler.assign("cancels_its_runner_later", {}, {}))
        # When their cancellations come while others run in turns of many
        refs = scheduler.assign("counts", *[{"upto": number} for number in range(1000)])
        ends = await scheduler.ended(*refs)
        assert {end.outcome for end in ends} <= {Outcome.SUCCESS, Outcome.RETRY}
    assert (await scheduler.ended(*scheduler.assign("counts", {"upto": 7})))[0].result == b"7"
    assert worker.executor_pids == before


async def test_a_thread_that_a_function_lets_be_interrupted_later_is_replaced(start: Any, journal: Any) -> None:
    # Given every thread about to be struck, while it rests
    scheduler, worker = await start(files=[HOSTILE], threads=2)
    before = worker.executor_pids
    struck = [{"journal": journal.name, "name": str(number)} for number in range(4)]
    await scheduler.ended(*scheduler.assign("interrupts_its_thread_later", *struck))
    journal.go()
    async with asyncio.timeout(30):
        while not all(Path(f"{journal.name}.{each['name']}.struck").exists() for each in struck):
            await asyncio.sleep(0.01)
    # When more comes than the threads that are left could take, then all of it ends
    for _ in range(5):
        ends = await scheduler.ended(*scheduler.assign("acts_plain", *[{"kind": ""}] * 3))
        assert {end.outcome for end in ends} <= {Outcome.SUCCESS, Outcome.RETRY}
    assert [end.outcome for end in await scheduler.ended(*scheduler.assign("acts_plain", {"kind": ""}))] == [1]
    assert worker.executor_pids == before


@pytest.mark.parametrize(
    ("function", "how", "status"),
    [
        ("forks", "returns", 0),
        ("forks", "raises", 1),
        ("forks", "exits", 7),
        ("forks", "awaits", 1),
        ("forks_plain", "returns", 0),
        ("forks_plain", "raises", 1),
        ("forks_plain", "exits", 7),
    ],
)
async def test_what_a_function_forks_is_no_second_executor(
    start: Any, journal: Any, function: str, how: str, status: int
) -> None:
    # Given one executor, in which others run in small steps
    scheduler, worker = await start(files=[HOSTILE], executors=1)
    (executor,) = worker.executor_pids
    beside = scheduler.assign("steps", *[{"upto": 2000}] * 10)
    # When a function forks, and the fork leaves its code as the function itself would
    (ref,) = scheduler.assign(function, {"how": how, "journal": journal.name})
    # Then the fork ends there, and only the function itself says how it ended
    (end,) = await scheduler.ended(ref)
    assert (end.outcome, end.result) == (Outcome.SUCCESS, b"%d" % status)
    # and everything else runs once, in the executor
    later = [scheduler.assign("steps", *[{"upto": 3}] * 10) for _ in range(20)]
    ends = await scheduler.ended(*beside, *(ref for some in later for ref in some))
    assert {end.result for end in ends} == {b"%d" % executor}
    assert worker.executor_pids == [executor]


@pytest.mark.parametrize(
    "what",
    [b"\x10\0\0\0" + b"\xff" * 16, b"error: no such file\n", b"\xff" * 8, b"\x02\0\0\0\x91\xc0"],
    ids=["no frame", "a text", "a frame without an end", "a frame of nothing"],
)
async def test_an_executor_into_whose_sockets_a_function_wrote_is_ended(start: Any, what: bytes) -> None:
    # Given one executor, in which others run
    scheduler, worker = await start(files=[HOSTILE], executors=1)
    before = worker.executor_pids
    beside = scheduler.assign("steps", {"upto": 1_000_000})
    # When a function writes there, nobody can tell any more what the executor says
    refs = scheduler.assign("writes_into_sockets", {"what": what.hex()})
    # Then all that was in it is lost, and another one goes on
    ends = await scheduler.ended(*refs, *beside)
    assert {end.outcome for end in ends} == {Outcome.LOST}
    assert (await scheduler.ended(*scheduler.assign("counts", {"upto": 1})))[0].result == b"1"
    assert not set(before) & set(worker.executor_pids)


@pytest.mark.parametrize("function", ["tells_slowly", "tells_slowly_plain"])
async def test_a_text_that_never_comes_is_running_time(start: Any, function: str) -> None:
    scheduler, _ = await start(files=[HOSTILE], timeout_grace=0.3)
    (end,) = await scheduler.ended(*scheduler.assign(function, {}))
    assert (end.outcome, end.reason) == (Outcome.RETRY, "timed out after 300ms")
    assert (await scheduler.ended(*scheduler.assign("counts", {"upto": 1})))[0].result == b"1"
