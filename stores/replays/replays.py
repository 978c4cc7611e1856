"""The replays' protocol: runs of parts of a stream's past (backfills), and the state of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...model.replay import Replay, ReplayState

#: Replays that are over and still listed; older ones are forgotten.
KEPT = 200


class Replays(Protocol):
    """Replays by number. A change is durable when its method returns."""

    async def add(self, replay: Replay) -> Replay:
        """Keeps a new replay under a number that none had before; returns it with that number."""

    async def get(self, number: int) -> Replay | None:
        """One replay; None: it is not known."""

    async def list(self, limit: int, going: bool = False) -> list[Replay]:
        """Replays, the newest first; with `going` only those that are not over."""

    async def answer(self, answer: Replay) -> Replay:
        """Puts `answer` in place of the replay with its number that is asked for; returns the replay as it is then.
        That is another one, and nothing was changed, when it was answered or cancelled before. Raises InvalidRequest
        for an unknown number."""

    async def move(self, number: int, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
        """Puts a replay into another state (see `may_move`), and returns it as it is then; harmless when it is in that
        state. A replay that is over keeps `at` and `counts`, and loses its spans. Raises InvalidRequest for an unknown
        number and for a move that does not exist; then nothing was changed."""


__all__ = ["KEPT", "Replay", "ReplayState", "Replays"]
