"""The bench of an engine, as the laws of its store need it: to be given one, and to open it again as after a restart.

A store's test is a short class:

    class TestMyLog(LogLaws):
        def bench(self, folder):
            return MyBench(folder)      # an async context manager that yields a StoreBench

The laws come as a class per store, so that a new engine is tested by the very sentences that the embedded one obeys.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from ..clock import ManualClock

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)

#: Seconds that something which must happen may take.
SOON = 5.0
#: Seconds after which something that must not happen is taken not to have happened.
MOMENT = 0.02

#: For model tests: each example opens an engine of its own, and several engines share one test function.
MODEL = settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)


class StoreBench(Protocol[E_co]):
    """An engine on the bench. `engine` is the store as it is open now and `clock` the clock it was given; `reopen`
    closes it and opens it again."""

    clock: ManualClock

    @property
    def engine(self) -> E_co: ...

    async def reopen(self) -> None: ...


class StoreLaws(Generic[E]):
    """The fixture of all stores' laws: `store`, a bench in a folder of its own."""

    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[E]]:
        """Returns a bench whose engine keeps its data in `folder`. Each engine's test defines it."""
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[StoreBench[E]]:
        """A new, empty store."""
        async with self.bench(tmp_path) as store:
            yield store

    def with_store(self, story: Callable[[StoreBench[E]], Awaitable[Any]]) -> None:
        """Runs a story with a new store, for tests that need one per example."""

        async def run(folder: Path) -> None:
            async with self.bench(folder) as store:
                await story(store)

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(Path(folder)))
