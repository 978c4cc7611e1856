"""The port for replays: begun, seen, changed. A replay's positions stay in its store: people are told how many."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...model.audit import Fate
from ...model.replay import Progress, ReplayOrder


class StretchView(NamedTuple):
    """As Stretch, with how many `ranges` its positions are in for the positions."""

    partition: str
    first: int
    end: int
    items: int
    waiting: int
    ranges: int


class ReplayView(NamedTuple):
    """As Progress, for people. `number` is 0 for one that was not begun; `state` a ReplayState's value."""

    number: int
    tailer: str
    name: str
    state: str
    items: int
    counts: dict[str, int]
    detail: str
    only: str
    rate: float
    priority: str
    who: str
    why: str
    created_at: float
    ended_at: float
    stretches: list[StretchView]

    @property
    def ended(self) -> int:
        """Items that are over, well or not."""
        return sum(self.counts.values()) - self.counts.get(Fate.DELAYED.label, 0)


def view_of(progress: Progress) -> ReplayView:
    """What people see of it."""
    replay = progress.replay
    return ReplayView(
        replay.number,
        replay.tailer,
        replay.name,
        replay.state.value,
        replay.items,
        progress.counts,
        progress.detail,
        replay.only,
        replay.rate,
        replay.priority,
        replay.who,
        replay.why,
        replay.created_at,
        replay.ended_at,
        [
            StretchView(each.partition, each.first, each.end, each.items, each.waiting, len(each.spans))
            for each in replay.stretches
        ],
    )


class ReplayPort(Protocol):
    """Replays of a part of a stream's past. All raise InvalidRequest for what is not there or means nothing."""

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Begins one, or says what it would be."""

    async def replays(self, number: int = 0, limit: int = 100) -> list[ReplayView]:
        """The newest first, at most 200; or the one of a number."""

    async def change_replay(self, number: int, what: str, why: str = "") -> ReplayView:
        """Pauses, resumes or cancels one: `pause`, `resume`, `cancel`. Harmless when it is so already."""
