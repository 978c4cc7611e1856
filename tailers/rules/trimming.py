"""Trimming of a source behind its checkpoint: which positions it is told, and when; pure.

A source that forgets everything its checkpoint has passed hears each position once, at most so often. An item that it
forgets is gone: so only a tailer that still is its owner, by the store's word of just now, tells it. A source that was
opened again may have forgotten what it was told, and hears it anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model.linger import Linger


class Trimming:
    """The checkpoints that one source has heard, by partition. It is told at most every `every` seconds; times are
    monotonic.

    opened  the source was opened again since, and hears all of them anew
    """

    __slots__ = ("_at", "_every", "_told", "opened")

    def __init__(self, every: float) -> None:
        self.opened = False
        self._every = every
        self._at = 0.0
        self._told: dict[str, int] = {}

    def reopened(self) -> None:
        """Notes that the source is opened, perhaps again."""
        self.opened = bool(self._told)

    def untold(self, checkpoints: Mapping[str, int]) -> dict[str, int]:
        """The checkpoints of which the source has not heard."""
        return {name: position for name, position in checkpoints.items() if position > self._told.get(name, 0)}

    def wait(self, now: float, checkpoints: Mapping[str, int]) -> float | None:
        """Seconds after which the source is told the checkpoints that it has not heard, also when nothing moves any
        more; None: it has heard all."""
        return max(0.0, self._at + self._every - now) if self.opened or self.untold(checkpoints) else None

    def is_time(self, now: float) -> bool:
        """Whether the source is told now. Then the next time is a while after."""
        if now < self._at + self._every:
            return False
        self._at = now
        return True

    def must_ask(self, checkpoints: Mapping[str, int], *, asked: bool) -> bool:
        """Whether the store is to be asked first whether this owner is one still: unless it said so just now (`asked`)
        to a source that was not opened since."""
        return self.opened or (not asked and bool(self.untold(checkpoints)))

    def to_tell(self, checkpoints: Mapping[str, int]) -> dict[str, int]:
        """The checkpoints that the source is told now, by an owner that is one still."""
        if self.opened:
            self.opened = False
            self._told.clear()
        return self.untold(checkpoints)

    def heard(self, positions: Mapping[str, int]) -> None:
        """Notes the checkpoints that the source was told."""
        self._told.update(positions)


def apart(every: Linger, of_each: float, held_up: Linger, many: int, *, passed: bool) -> Linger:
    """The linger between two commits: `every`, `of_each` seconds for each of the `many` partitions of the last one, and
    at least `held_up` behind one that moved nothing. An item on its way into a store holds the frontier for that long,
    and positions settled above it meanwhile would be written again and again."""
    return max(every, Linger(of_each * many), every if passed or not many else held_up)
