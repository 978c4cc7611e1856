"""The port for replays: started, shown, changed. A replay's positions stay in its store: views have their number."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...model.audit import Fate
from ...model.replay import Progress, ReplayOrder


class StretchView(NamedTuple):
    """A Stretch for people, with the number of its `ranges` in place of the positions."""

    partition: str
    first: int
    end: int
    items: int
    waiting: int
    ranges: int


class ReplayView(NamedTuple):
    """A Progress for people. `number` is 0 for a replay that was not begun; `state` is a ReplayState's value."""

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
        """Number of items that are over, well or not."""
        return sum(self.counts.values()) - self.counts.get(Fate.DELAYED.label, 0)


def view_of(progress: Progress) -> ReplayView:
    """The view of a replay's progress."""
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
    """Calls about replays of a part of a stream's past. Every method raises InvalidRequest for an unknown tailer or
    replay, or an order without sense."""

    async def start_replay(self, order: ReplayOrder) -> ReplayView:
        """Begins a replay, or shows the one that would be begun (a dry run)."""

    async def replays(self, number: int = 0, limit: int = 100) -> list[ReplayView]:
        """Replays, the newest first, at most 200; or the one of this number."""

    async def change_replay(self, number: int, what: str, why: str = "") -> ReplayView:
        """Changes a replay: `what` is `pause`, `resume` or `cancel`. Harmless when it is so already."""
