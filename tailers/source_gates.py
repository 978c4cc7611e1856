"""The gates of sources: the tailers that an operator paused, by the control store, wherever the tailers run (FL17).

Tailers follow these gates themselves, without a scheduler: a tailer for which nobody schedules is paused all the same.
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

#: Seconds of one wait for a change; seconds before a store that failed is asked again.
WAIT, PAUSE = 30.0, 0.5


class SourceGates:
    """The sources that gates pause. `changed` is called when others are paused than before. Until the gates are known
    nothing may be read; without a control store nothing is paused."""

    def __init__(self, control: Control | None, changed: Callable[[], None]) -> None:
        self._control = control
        self._changed = changed
        self._known = Snapshot(version=-1)
        self._paused: frozenset[str] = frozenset()

    def paused(self, source: str) -> bool:
        """Whether the tailer of a source reads nothing now."""
        return source in self._paused or (self._control is not None and self._known.version < 0)

    async def look(self) -> None:
        """Reads the gates now. Raises the errors of the store."""
        if self._control is not None:
            before = self._known.version
            self._take(await self._control.snapshot(), before)

    async def follow(self) -> None:
        """Follows every change of the gates, until cancelled."""
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
        """Takes a snapshot of the gates, unless a newer one is known. `known_before`: the version that was known when
        the reading began; a wait may end with a snapshot that a look has overtaken."""
        if not is_valid(snapshot, known_before, self._known):
            return
        before, first = self._paused, self._known.version < 0
        self._known = snapshot
        self._paused = frozenset(gate.source for gate in snapshot.gates if gate.source and gate.action == "pause")
        if first or self._paused != before:
            self._changed()
