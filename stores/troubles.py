"""Troubles of parts that run apart, collected at the store server, which all of them call anyway: gateways read them
there for `tailrace alerts`. They are kept as long as the store server runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..model.errors import InvalidRequest
from ..model.reopening import Trouble

#: Seconds between two reports of one process, while it has troubles; and seconds for which its last report is shown.
TELL_EVERY = 2.0
SILENCE = 60.0
#: Processes that are remembered, the last ones that reported; most troubles of one, and most characters of their texts.
MOST_TELLERS, MOST_TROUBLES = 100, 20
LONGEST_NAME, LONGEST_TEXT = 200, 500


class Troubles(Protocol):
    """Failures that the parts around a store server report of themselves, for operators."""

    async def tell(self, teller: str, troubles: list[Trouble]) -> None:
        """Reports all troubles that the process `teller` has now, in place of those that it reported before; an empty
        list: all is well."""

    async def all(self) -> list[Trouble]:
        """The troubles of the store server's own parts, and those that were reported."""


@runtime_checkable
class Troubled(Protocol):
    """A store that knows of troubles of its own."""

    def troubles(self) -> list[Trouble]:
        """The troubles of now, for operators."""


class TroubleBoard:
    """The troubles in memory: implements `Troubles`. `own` returns those of the parts in this process."""

    def __init__(self, own: Callable[[], list[Trouble]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._own = own
        self._clock = clock
        self._told: dict[str, tuple[float, list[Trouble]]] = {}  # when (monotonic), the oldest first

    async def tell(self, teller: str, troubles: list[Trouble]) -> None:
        """Keeps the troubles of a process in place of its former ones; an empty list: all is well."""
        name = teller[:LONGEST_NAME]
        if not name:
            raise InvalidRequest("teller: expected the name of the process that reports its troubles")
        self._told.pop(name, None)
        if troubles:
            self._told[name] = (self._clock.monotonic(), [self._bounded(each) for each in troubles[:MOST_TROUBLES]])
        while len(self._told) > MOST_TELLERS:
            del self._told[next(iter(self._told))]

    async def all(self) -> list[Trouble]:
        """The troubles of now. Those of a process that fell silent are shown for SILENCE seconds more."""
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
