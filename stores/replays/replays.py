"""The replays' protocol: which runs over a stream's past there are, and in which state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...model.replay import Replay, ReplayState

#: Replays that are over and still told of; older ones are forgotten.
KEPT = 200


class Replays(Protocol):
    """Durable when a method returns."""

    async def add(self, replay: Replay) -> Replay:
        """Keeps a new one under a number that none had before; returns it with that."""

    async def get(self, number: int) -> Replay | None:
        """One of them."""

    async def list(self, limit: int, going: bool = False) -> list[Replay]:
        """The newest first; with `going` only those that are not over."""

    async def answer(self, answer: Replay) -> Replay:
        """Puts `answer` under its number in place of one that is asked for; returns what is there then. That is
        something else, and nothing was changed, when it was answered or cancelled before. Raises InvalidRequest for an
        unknown one."""

    async def move(self, number: int, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
        """Puts it into another state (see `may_move`), and returns it as it is then; harmless when it is there. One
        that is over keeps `at` and `counts`, and its spans go. Raises InvalidRequest for an unknown one and for a move
        that there is not; then nothing was changed."""


__all__ = ["KEPT", "Replay", "ReplayState", "Replays"]
