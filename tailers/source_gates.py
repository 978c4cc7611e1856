"""The gates of sources: which tailers an operator paused, as the control store has it, wherever the tailers run (FL17).

They are followed, never judged by a scheduler: a tailer that nobody schedules for is paused all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..foundation.logger import Logger
from ..model.errors import TailraceError
from ..model.limits import Snapshot
from ..stores.control.control import Control
from ..stores.control.rules.valid_snapshot import is_valid

log = Logger("tailrace.tailers")

#: Seconds of one wait for a change, and before a store that failed is asked again.
WAIT, PAUSE = 30.0, 0.5


class SourceGates:
    """The sources that gates pause. `changed` is called when there are others. Until they are known nothing may be
    read; without a control store nothing is paused."""

    def __init__(self, control: Control | None, changed: Callable[[], None]) -> None:
        self._control = control
        self._changed = changed
        self._known = Snapshot(version=-1)
        self._paused: frozenset[str] = frozenset()

    def paused(self, source: str) -> bool:
        """Whether the tailer of a source reads nothing now."""
        return source in self._paused or (self._control is not None and self._known.version < 0)

    async def look(self) -> None:
        """Reads them now. Raises what the store raises."""
        if self._control is not None:
            before = self._known.version
            self._take(await self._control.snapshot(), before)

    async def follow(self) -> None:
        """Hears of every change, until cancelled."""
        while self._control is not None:
            before = self._known.version
            try:
                snapshot = await self._control.wait(before, WAIT)
            except TailraceError as error:
                log.warning("the gates of sources are not known, asking again", why=str(error))
                await asyncio.sleep(PAUSE)
                continue
            if snapshot is not None:
                self._take(snapshot, before)

    def _take(self, snapshot: Snapshot, known_before: int) -> None:
        """`known_before`: the version that was known when it began to read. Whoever waits may bring what a look has
        overtaken."""
        if not is_valid(snapshot, known_before, self._known):
            return
        before, first = self._paused, self._known.version < 0
        self._known = snapshot
        self._paused = frozenset(gate.source for gate in snapshot.gates if gate.source and gate.action == "pause")
        if first or self._paused != before:
            self._changed()
