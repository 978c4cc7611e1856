"""Troubles of parts that run apart, told where all of them call anyway: at the store server, from which gateways take
it for `tailrace alerts`. Nothing of it is kept longer than its server runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..model.errors import InvalidRequest
from ..model.reopening import Trouble

#: Seconds between what one process tells, while there is something; and for how long what the last one told is shown.
TELL_EVERY = 2.0
SILENCE = 60.0
#: Processes that are remembered, the last ones that told; what each may tell, and how long its words are.
MOST_TELLERS, MOST_TROUBLES = 100, 20
LONGEST_NAME, LONGEST_TEXT = 200, 500


class Troubles(Protocol):
    """Failures that the parts around a store server tell of themselves, for operators."""

    async def tell(self, teller: str, troubles: list[Trouble]) -> None:
        """All that ails the process of this name now, in place of what it told before."""

    async def all(self) -> list[Trouble]:
        """What ails the store server's own parts, and what was told."""


class TroubleBoard:
    """Implements `Troubles`. `own` are those of the parts beside it."""

    def __init__(self, own: Callable[[], list[Trouble]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._own = own
        self._clock = clock
        self._told: dict[str, tuple[float, list[Trouble]]] = {}  # when (monotonic), the oldest first

    async def tell(self, teller: str, troubles: list[Trouble]) -> None:
        """In place of what it told before; nothing: all is well."""
        name = teller[:LONGEST_NAME]
        if not name:
            raise InvalidRequest("which process ails? Its name is missing")
        self._told.pop(name, None)
        if troubles:
            self._told[name] = (self._clock.monotonic(), [self._bounded(each) for each in troubles[:MOST_TROUBLES]])
        while len(self._told) > MOST_TELLERS:
            del self._told[next(iter(self._told))]

    async def all(self) -> list[Trouble]:
        """Now: of who fell silent, what it told last, for a while."""
        now = self._clock.monotonic()
        self._told = {name: each for name, each in self._told.items() if now - each[0] < SILENCE}
        return [*self._own(), *(trouble for _, troubles in self._told.values() for trouble in troubles)]

    def _bounded(self, trouble: Trouble) -> Trouble:
        return replace(
            trouble,
            part=trouble.part[:LONGEST_NAME],
            since=trouble.since if math.isfinite(trouble.since) else self._clock.wall(),
            what=trouble.what[:LONGEST_TEXT],
            times=max(0, min(trouble.times, 1 << 30)),
            todo=trouble.todo[:LONGEST_TEXT],
        )
