"""The memory that guard, supervisor and executors share: pages that are given out, freed, and never mixed up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.runtime import guard_memory as watches
from tailrace.runtime.executors import ExecutorProcess
from tailrace.runtime.frames import ExecutorSetup
from tailrace.runtime.guard_memory import WatchPage, WatchPages

SETUP = ExecutorSetup([], [], ["f"], 1, 1, 1 << 20, 5.0, 30.0)


@pytest.fixture
def watch() -> Iterator[WatchPages]:
    watch = WatchPages.create()
    yield watch
    watch.close()


def test_what_is_written_on_a_page_is_seen_by_whoever_maps_the_memory(watch: WatchPages) -> None:
    number, mark = watch.take()
    watch.started(number, 123)
    WatchPage(watch.fd, number).tell_armed(7.5)
    guards = WatchPages(os.dup(watch.fd))
    assert (guards.count, guards.who(number)) == (1, (mark, 123, 7.5))
    guards.tell_died(number, 7.25)
    assert (watch.armed(number), watch.died(number)) == (7.5, 7.25)
    guards.close()


def test_a_page_that_is_used_again_remembers_nothing(watch: WatchPages) -> None:
    number, mark = watch.take()
    other, _ = watch.take()
    watch.started(number, 123)
    WatchPage(watch.fd, number).tell_armed(7.5)
    watch.tell_died(number, 7.25)
    watch.free(number)
    assert watch.who(number)[0] == ""
    again, new = watch.take()
    assert (again, other, watch.count) == (number, 1, 2)
    assert new != mark
    assert (watch.who(again), watch.died(again)) == ((new, 0, 0.0), 0.0)


def test_more_than_there_are_pages_for_is_refused_by_number(watch: WatchPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "MOST", 2)
    watch.take()
    watch.take()
    with pytest.raises(OSError, match="a worker can have 2 executors at a time"):
        watch.take()


def open_descriptors() -> set[tuple[str, str]]:
    """Each open descriptor, and the file or socket that it is of."""
    found = set()
    for each in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            found.add((each.name, str(each.readlink())))
    return found


async def test_an_executor_that_cannot_be_started_leaves_neither_page_nor_descriptors(
    watch: WatchPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/to/be/found")
    gc.collect()
    before = open_descriptors()

    def never(*_: Any) -> None:
        raise AssertionError

    for _ in range(3):
        executor = ExecutorProcess(SETUP, on_frame=never, on_death=never, watch=watch)
        with pytest.raises(OSError):
            await executor.start()
        executor.close()
    await asyncio.sleep(0)
    assert watch.count == 1
    assert watch.who(0)[0] == ""
    # (a thread of an earlier test of this process may close one of its own meanwhile; none that is new may be left)
    assert open_descriptors() <= before
