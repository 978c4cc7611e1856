"""A replay: a part of a stream's past, run again as a run of its own. What is asked for, what it is, how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from .audit import AFTER_DELAY, Fate

#: The priority of a replay unless somebody says otherwise: what is live goes before it.
PRIORITY = "reporting"
_MARK = "@replay-"


class Only(StrEnum):
    """Which positions of a range, by how the live tailer left them (the classes of `tailrace audit`).

    failed   they became dead letters, whatever became of those since
    dropped  a gate or a seek passed them
    unseen   the tailer never ran them for want of an item: it began behind them, retention took them, nothing was there
    """

    ALL = "all"
    FAILED = "failed"
    DROPPED = "dropped"
    UNSEEN = "unseen"


class Bound(NamedTuple):
    """An end of a range: a `position`, else an `edge` (see seek.py), else the first item from `time` (wall clock
    seconds) on."""

    position: int | None = None
    edge: str = ""
    time: float = 0.0


class ReplayOrder(NamedTuple):
    """What an operator wants: items from `begin` to before `end`.

    partition  None: every one; a position needs one when there are several
    rate       items per second at most; 0: as fast as they are taken
    priority   of its items; empty: as the tailer's file says
    who, why   kept with the replay
    """

    tailer: str
    begin: Bound
    end: Bound
    only: str = Only.ALL
    partition: str | None = None
    rate: float = 0.0
    priority: str = PRIORITY
    who: str = ""
    why: str = ""
    dry_run: bool = False


class Stretch(NamedTuple):
    """What a replay runs of one partition, fixed when it begins: positions from `first` to before `end`.

    spans    of them, those to run: ranges, both ends included, rising; gone when the replay is over
    items    how many these are; -1: positions are far apart, and nobody counted
    waiting  how many were left out because they wait for a retry of the live tailer
    """

    partition: str
    first: int
    end: int
    spans: tuple[tuple[int, int], ...] = ()
    items: int = 0
    waiting: int = 0


class State(StrEnum):
    """Of a replay. `retrying`: its source is done, and what failed waits for its retries. `cancelling`: what was out
    when it was cancelled comes to its end."""

    RUNNING = "running"
    PAUSED = "paused"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    DONE = "done"
    CANCELLED = "cancelled"


OVER = frozenset((State.DONE, State.CANCELLED))
#: Those that read their source: so many of them at once are bounded.
READING = frozenset((State.RUNNING, State.PAUSED))
_MOVES: dict[State, frozenset[State]] = {
    State.RUNNING: frozenset((State.PAUSED, State.RETRYING, State.CANCELLING)),
    State.PAUSED: frozenset((State.RUNNING, State.CANCELLING)),
    State.RETRYING: frozenset((State.DONE, State.CANCELLING)),
    State.CANCELLING: frozenset((State.CANCELLED,)),
    State.DONE: frozenset(),
    State.CANCELLED: frozenset(),
}


def may_move(before: State, after: State) -> bool:
    """Whether a replay may go from one state to another. Staying where it is is no move, and harmless."""
    return before is after or after in _MOVES[before]


@dataclass(frozen=True, slots=True)
class Replay:
    """One run. `number` is the store's and never given twice; `sparse`: its positions are far apart; `counts` is how
    its items ended, once it is over."""

    number: int
    tailer: str
    stretches: tuple[Stretch, ...]
    only: str = Only.ALL
    rate: float = 0.0
    priority: str = PRIORITY
    who: str = ""
    why: str = ""
    created_at: float = 0.0
    sparse: bool = False
    state: State = State.RUNNING
    ended_at: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Under which its items, its checkpoint and its rows are known: no tailer's file may have such a name, so
        nothing of it can be taken for the live tailer's."""
        return f"{self.tailer}{_MARK}{self.number}"

    @property
    def items(self) -> int:
        """How many there are to run; -1: nobody counted."""
        counted = [stretch.items for stretch in self.stretches]
        return -1 if -1 in counted else sum(counted)


class Progress(NamedTuple):
    """How far a replay is. `counts`: how many of its items ended in which way, or wait for a retry; `detail`: what
    keeps it from going on, for people."""

    replay: Replay
    counts: dict[str, int]
    detail: str = ""

    @property
    def ended(self) -> int:
        """Items that are over, well or not."""
        return sum(self.counts.values()) - self.counts.get(Fate.DELAYED.label, 0)


def counted(tally: Mapping[Fate, int], waiting: int, done: int, dead: int) -> dict[str, int]:
    """How the items of a run ended: what its book counted, where what left for the delay service is told by what the
    ledger says became of it. What was not to be run is left out."""
    counts = Counter({fate.label: items for fate, items in tally.items() if fate not in (Fate.FILTERED, Fate.DELAYED)})
    counts[Fate.DELAYED.label] += waiting
    counts[AFTER_DELAY] += done
    counts[Fate.DEAD.label] += dead
    return dict(+counts)
