"""Order of the stream's items with a key, as the world sees it: one of a key runs at a time, and the last run of each
comes after that of every earlier one."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...stores.log.batch import decode
from .journal import Execution, Journal
from .parts import STREAM
from .sqlite_disk import Disk

_PREFIX = f"{STREAM}/0/"


class KeyOrder:
    """Check of the order of keys in a stream in order. `over` says of an id whether it was done or buried at some
    time."""

    def __init__(self, disk: Disk, journal: Journal, over: Callable[[str], bool]) -> None:
        self._disk = disk
        self._journal = journal
        self._over = over
        self._keys: list[str] = []
        journal.begins.append(self._begins)

    def _key(self, position: int) -> str:
        if position >= len(self._keys):
            self._load()
        return self._keys[position]

    def _load(self) -> None:
        query = "SELECT columns FROM batches WHERE stream = (SELECT id FROM streams WHERE name = ?) ORDER BY first"
        batches = [decode(columns) for (columns,) in self._disk.rows("log", query, (STREAM,))]
        self._keys = [key for batch in batches for key in batch.keys or [""] * len(batch.payloads)]

    def _before(self, position: int, key: str) -> list[str]:
        return [f"{_PREFIX}{each}" for each in range(position) if self._key(each) == key]

    def _begins(self, run: Execution) -> None:
        """Checks, as an item starts, that everything of its key before it is over, and nothing after it runs."""
        if not run.id.startswith(_PREFIX):
            return
        position = int(run.id.removeprefix(_PREFIX))
        key = self._key(position)
        if not key:
            return
        for id_ in self._before(position, key):
            if not self._over(id_):
                self._journal.wrong(f"order: {run.id} starts before {id_}, which has its key {key!r}, is over")
                return
        for id_, other in self._journal.live.items():
            if id_ == run.id or not id_.startswith(_PREFIX) or self._key(int(id_.removeprefix(_PREFIX))) != key:
                continue
            text = f"order: {run.id} starts in {run.where} while {id_} of its key {key!r} runs in {other.where}"
            if other.frozen:
                other.overtaken = text
            else:
                self._journal.wrong(text)

    def at_rest(self) -> None:
        """Checks that the last runs of each key's items were in their order."""
        last: dict[str, tuple[str, float]] = {}
        self._load()
        for position, key in enumerate(self._keys):
            story = self._journal.stories.get(f"{_PREFIX}{position}")
            runs = [] if story is None else story.executions
            if not key or not runs:
                continue
            before, ended = last.get(key, ("", 0.0))
            if runs[-1].id in self._journal.in_line:
                continue  # redriven, it ran after those that came after it
            if runs[-1].start < ended and not self._late_by(runs[-1].n, ended):
                self._journal.wrong(f"order: {before} of key {key!r} had its last run after that of {runs[-1].id}")
            last[key] = runs[-1].id, runs[-1].end or runs[-1].start

    def _late_by(self, n: int, time: float) -> bool:
        """Whether an item may have been too late to run again after that: then it was over as it had run before."""
        return self._journal.deadlines.get(n, math.inf) - self._journal.jumped <= time
