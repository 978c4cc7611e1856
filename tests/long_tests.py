"""`make test-long`: which test runs, how long it takes about, and how much is left of all of them.

A test says how long it takes alone on two cores, about: `@pytest.mark.long(minutes=3)`. Short ones come first, so that
what is broken is known soon.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

import pytest

#: Minutes of a test that does not say how long it takes.
USUAL = 1.0
#: Minutes between two signs of life of a test that runs.
SIGN = 1.0
#: Times as long as it says that a test may take, and the least that each may, seconds: another machine is busy.
TIMES, SHORTEST = 2.0, 300.0
#: Minutes that all of them together may take: as long as somebody would wait for (CONTRIBUTING.md says so).
BOUND = 135.0
#: Minutes that all long tests of this run say, also when they are left out: `make test` refuses too many, so that
#: `make test-long` need not.
TOGETHER = pytest.StashKey[float]()


def minutes(item: pytest.Item) -> float:
    """Minutes that a test says it takes, USUAL if it says nothing; 0: it is not long."""
    marker = item.get_closest_marker("long")
    return 0.0 if marker is None else float(marker.kwargs.get("minutes", USUAL))


class LongProgress:
    """Says before each test what comes, and meanwhile that it goes on."""

    def __init__(self) -> None:
        self._left: list[pytest.Item] = []
        self._count = 0
        self._over = threading.Event()
        self._telling: threading.Thread | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Puts the shortest tests first."""
        items.sort(key=minutes)
        self._left, self._count = list(items), len(items)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        item = next((each for each in self._left if each.nodeid == nodeid), None)
        if item is None:
            return
        left = sum(map(minutes, self._left))
        self._left.remove(item)
        number = self._count - len(self._left)
        say(f"\n{number} of {self._count}, about {minutes(item):g} min; all that is left about {left:g} min\n")
        self._over = threading.Event()
        self._telling = threading.Thread(target=self._tell, args=(self._over, minutes(item)), daemon=True)
        self._telling.start()

    def pytest_runtest_logfinish(self) -> None:
        self._over.set()
        if self._telling is not None:
            self._telling.join()

    @staticmethod
    def _tell(over: threading.Event, about: float) -> None:
        began = time.monotonic()
        while not over.wait(SIGN * 60):
            say(f"… {(time.monotonic() - began) / 60:.0f} of about {about:g} min\n")


def say(text: str) -> None:
    """Writes to the terminal, also while a test's own output is taken (`--capture=sys`)."""
    os.write(2, text.encode())


def bound(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Adds up the minutes of all long tests, and ends one that takes more than twice as long as it says."""
    config.stash[TOGETHER] = sum(map(minutes, items))
    for item in items:
        if about := minutes(item):
            item.add_marker(pytest.mark.timeout(max(SHORTEST, TIMES * about * 60)))
