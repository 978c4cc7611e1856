"""Bounds of memory: a run that wants more than its bound fails by name, alone; the death of a process tells how much it
had."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tailrace.model.errors import UserError
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Extra

SUSPECT = {0: Extra(alone=True, crashes=1)}


@pytest.mark.parametrize("piece", [1 << 20, 40])
@pytest.mark.parametrize("function", ["hoards", "hoards_on_the_loop"])
async def test_what_wants_more_than_its_bound_in_quarantine_fails_and_nobody_else_does(
    start: Any, journal: Any, function: str, piece: int
) -> None:
    """Given a suspect that allocates without end, in large pieces or in millions of small ones."""
    scheduler, worker = await start(quarantine_memory="64MiB", suspects=1)
    before = set(worker.executor_pids)
    neighbour = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    hoarder = scheduler.assign(function, {"pieces": 1 << 40, "piece": piece}, extras=SUSPECT)
    follower = scheduler.assign(function, {"pieces": 40}, extras=SUSPECT)
    # When the kernel refuses, then it ends as a failure that names the bound, or dies of it as a suspect
    (end,) = await scheduler.ended(*hoarder)
    if end.outcome == Outcome.RETRY:
        assert end.reason.startswith("out of memory, it may have 64 MiB (quarantine_memory): MemoryError")
    else:
        assert (end.outcome, end.crashed) == (Outcome.LOST, True)
        assert "it may allocate 64 MiB" in end.reason
    assert piece == 40 or end.outcome == Outcome.RETRY
    # And what follows has the whole bound again, and the neighbour never noticed
    (after,) = await scheduler.ended(*follower)
    assert after.outcome == Outcome.HELD or after.result == b"40"
    journal.go()
    assert (await scheduler.ended(*neighbour))[0].outcome == Outcome.SUCCESS
    assert before <= set(worker.executor_pids)


async def test_ordinary_executors_are_not_bound_unless_their_pool_is(start: Any) -> None:
    scheduler, _ = await start(quarantine_memory="64MiB")
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128}))
    assert end.result == b"128"


async def test_a_pool_may_be_bound(start: Any) -> None:
    scheduler, _ = await start(memory={"default": "64MiB"})
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128}))
    assert end.outcome == Outcome.RETRY
    assert "64 MiB (memory of pool 'default')" in end.reason


async def test_a_bound_for_a_pool_that_is_not_there_fails_the_start(start: Any) -> None:
    with pytest.raises(UserError, match="no pool 'defualt'; expected one of default, isolated, special"):
        await start(pools=True, memory={"defualt": 1})


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSEGV"])
async def test_a_death_alone_tells_its_signal_age_memory_and_the_very_last_note(start: Any, how: str) -> None:
    scheduler, _ = await start(quarantine_memory="512MiB")
    # Given a suspect that dies at once after its last note, holding 128 MiB
    (end,) = await scheduler.ended(*scheduler.assign("hoards", {"pieces": 128, "how": how}, extras=SUSPECT))
    assert (end.outcome, end.crashed, end.progress) == (Outcome.LOST, True, "128 pieces")
    told = re.fullmatch(
        rf"the process was killed by {how} after it ran (\S+) s, at (most )?([\d.]+) (MiB|GiB) of memory "
        r"\(it may allocate 512 MiB\); last note: 128 pieces",
        end.reason,
    )
    assert told, end.reason
    assert float(told[1]) < 30
    # (what it is at most may be the memory of this process, from which it was started)
    reached = float(told[3]) * (1024 if told[4] == "GiB" else 1)
    assert reached >= 128 and (told[2] or reached < 512)
