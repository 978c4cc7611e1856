"""Threads of an executor that the system does not give."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.model.priority import Priority
from tailrace.runtime.threads import NO_THREAD, Threads


class Bench:
    """An engine of three threads at most, whose items wait until `go`."""

    def __init__(self) -> None:
        self.go, self.began, self.woken = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
        board: Any = SimpleNamespace(cells=[0] * 8)
        parents: Any = SimpleNamespace(threads=0, ended=lambda run: None)
        self.threads = Threads(3, 0, board, parents, self._run, self.woken.release)

    def _run(self, item: Any, run: Any) -> None:
        self.began.release()
        assert self.go.wait(10)

    def push(self, *keys: int) -> None:
        entry: Any = SimpleNamespace(priority=Priority(2))
        self.threads.push([(key, entry, b"", None) for key in keys])  # type: ignore[misc]

    def ended(self, count: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        while len(found) < count:
            found |= dict(self.threads.collect())
            if len(found) < count and self.threads.rest():
                assert self.woken.acquire(timeout=10)
        return found


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A switch: while it is set no thread can be started."""
    refuses, start = [False], threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        if refuses[0]:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    return refuses


def test_what_no_thread_can_be_had_for_goes_back_unharmed_and_the_next_one_runs(no_thread: list[bool]) -> None:
    bench = Bench()
    # Given a system that gives no thread, when items come, then they are handed back, which costs no attempt
    no_thread[0] = True
    bench.push(1, 2)
    assert bench.ended(2) == {1: NO_THREAD, 2: NO_THREAD}
    # And when it gives one again, then items run
    no_thread[0] = False
    bench.go.set()
    bench.push(3)
    assert bench.ended(1) == {3: None}


def test_who_runs_takes_what_no_other_thread_can_be_had_for(no_thread: list[bool]) -> None:
    bench = Bench()
    bench.push(1)
    assert bench.began.acquire(timeout=10)
    # Given one that runs, and a system that gives no other thread
    no_thread[0] = True
    bench.push(2, 3)
    assert bench.threads.collect() == []
    bench.go.set()
    # Then it runs all of them, one after the other
    assert bench.ended(3) == {1: None, 2: None, 3: None}
