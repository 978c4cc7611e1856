"""A part that is made anew whenever it is opened again: it keeps more in memory than it could reset."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from ..foundation.duties import Duties
from ..foundation.lifecycle import Attended
from ..model.metrics import PART_FAILURES, Sample


class Made(Attended, Protocol):
    """A part that knows its metrics."""

    async def samples(self) -> Sequence[Sample]: ...


#: Tells somebody of a part that was opened again: its name, why, and how often it was.
Tell = Callable[[str, str, int], Coroutine[Any, Any, object]]


class Remade:
    """A Part around one that `make` makes, for each start another. `make` is given the former one, since others know
    its address; None: there was none. `tell` is begun whenever another one is open; None: nobody is told."""

    def __init__(self, make: Callable[[Any], Made], tell: Tell | None = None) -> None:
        self._make = make
        self._tell = tell
        self._why = ""
        self._part = make(None)
        self._starts = 0

    @property
    def duties(self) -> Duties:
        """Duties of the present part."""
        return self._part.duties

    @property
    def part(self) -> Any:
        """The present part."""
        return self._part

    @property
    def address(self) -> str:
        """The address at which the part listens, if it does."""
        return str(getattr(self._part, "address", ""))

    async def samples(self) -> list[Sample]:
        """Metrics of the part now, and how often it was opened again."""
        part = (("part", self.duties.part),)
        return [*await self._part.samples(), Sample(PART_FAILURES, part, max(0, self._starts - 1))]

    async def attached(self) -> None:
        """Waits until the part is attached, if it has to be."""
        attached: Any = getattr(self._part, "attached", None)
        if attached is not None:
            await attached()

    async def start(self) -> None:
        """Starts the part: at first the one that was made first, later another."""
        if self._starts:
            self._why = self.duties.why or self._why
            self._part = self._make(self._part)
        self._starts += 1
        await self._part.start()
        if self._starts > 1 and self._tell is not None:
            part = f"{self.duties.part} {getattr(self._part, 'name', '') or self.address}"
            self.duties.begin(self._tell(part, self._why, self._starts - 1), "telling of its failure")

    async def drain(self, timeout: float) -> None:
        """Drains the present part."""
        await self._part.drain(timeout)

    async def stop(self) -> None:
        """Stops the present part."""
        await self._part.stop()
