"""A replay: a part of a stream's past, run again as a run of its own. What is asked for, what it is, how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

from .audit import AFTER_DELAY, Fate
from .errors import InvalidRequest
from .priority import LOWEST, Priority

#: The priority of a replay unless somebody says otherwise: what is live goes before it.
PRIORITY = LOWEST.label
HIGHEST_RATE = 1e9
_MARK = "@replay-"


class Only(StrEnum):
    """The choice of positions of a range, by how the live tailer left them (the classes of `tailrace audit`).

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
    """The order of an operator: items from `begin` to before `end`.

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

    def check(self) -> None:
        """Raises InvalidRequest for what no tailer can do."""
        if self.only not in list(Only):
            raise InvalidRequest(f"--only is {self.only!r}: expected one of {', '.join(Only)}")
        if self.priority:
            Priority.parse(self.priority)
        if not (isfinite(self.rate) and 0 <= self.rate <= HIGHEST_RATE):
            raise InvalidRequest(f"--rate is {self.rate}: expected 0 (no limit) to {HIGHEST_RATE:g} items per second")


class Stretch(NamedTuple):
    """The part of one partition that a replay runs, fixed when it begins: positions from `first` to before `end`.

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


class ReplayState(StrEnum):
    """The state of a replay. `asked`: an operator wants it, and no process that runs its tailer has said yet which
    positions that is; that process answers with `running`, `looked` (it was a dry run) or `refused`. `retrying`: its
    source is done, and failed items wait for their retries. `cancelling`: items that were out when it was cancelled
    come to their end."""

    ASKED = "asked"
    RUNNING = "running"
    PAUSED = "paused"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    DONE = "done"
    CANCELLED = "cancelled"
    LOOKED = "looked"
    REFUSED = "refused"


#: States of replays that never began, and are over.
ANSWERED = frozenset((ReplayState.LOOKED, ReplayState.REFUSED))
OVER = frozenset((ReplayState.DONE, ReplayState.CANCELLED)) | ANSWERED
#: States of replays that read their source: the number of these at once is bounded.
READING = frozenset((ReplayState.RUNNING, ReplayState.PAUSED))
_MOVES: dict[ReplayState, frozenset[ReplayState]] = {
    ReplayState.ASKED: frozenset((ReplayState.CANCELLED,)),
    ReplayState.RUNNING: frozenset((ReplayState.PAUSED, ReplayState.RETRYING, ReplayState.CANCELLING)),
    ReplayState.PAUSED: frozenset((ReplayState.RUNNING, ReplayState.CANCELLING)),
    ReplayState.RETRYING: frozenset((ReplayState.DONE, ReplayState.CANCELLING)),
    ReplayState.CANCELLING: frozenset((ReplayState.CANCELLED,)),
    **{state: frozenset[ReplayState]() for state in OVER},
}


def may_move(before: ReplayState, after: ReplayState) -> bool:
    """Whether a replay may go from one state to another. Staying where it is is no move, and harmless."""
    return before is after or after in _MOVES[before]


@dataclass(frozen=True, slots=True)
class Replay:
    """One run. `number` is the store's and never given twice; `sparse`: its positions are far apart; `counts` is how
    its items ended, once it is over; `order` is what was asked for, and `detail` why that was refused."""

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
    state: ReplayState = ReplayState.RUNNING
    ended_at: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    order: ReplayOrder | None = None
    detail: str = ""

    @property
    def name(self) -> str:
        """Under which its items, its checkpoint and its rows are known: no tailer's file may have such a name, so
        nothing of it can be taken for the live tailer's."""
        return f"{self.tailer}{_MARK}{self.number}"

    @property
    def items(self) -> int:
        """Number of items to run; -1: positions are far apart, and nobody counted."""
        counted = [stretch.items for stretch in self.stretches]
        return -1 if -1 in counted else sum(counted)


def moved(before: Replay, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
    """A replay once it is put into another state, the same one where it is there already: THE rule for each store. One
    that is over keeps `at` and `counts`, and its spans go. Raises InvalidRequest for a move that there is not."""
    if not may_move(before.state, state):
        raise InvalidRequest(f"the replay {before.number} is {before.state}: it cannot become {state}")
    if before.state is state:
        return before
    if state not in OVER:
        return replace(before, state=state)
    stretches = tuple(stretch._replace(spans=()) for stretch in before.stretches)
    return replace(before, state=state, ended_at=at, counts=dict(counts), stretches=stretches)


def tailer_of(name: str) -> str:
    """The tailer that a replay with this name repeats; empty: the name is no replay's."""
    tailer, mark, number = name.rpartition(_MARK)
    return tailer if mark and number.isdecimal() else ""


def asked_for(order: ReplayOrder, at: float) -> Replay:
    """The replay as it is stored when an order comes in, before any process answered it."""
    said = (order.only, order.rate, order.priority, order.who, order.why)
    return Replay(0, order.tailer, (), *said, created_at=at, state=ReplayState.ASKED, order=order)


class Progress(NamedTuple):
    """The progress of a replay. `counts`: how many of its items ended in which way, or wait for a retry; `detail`: what
    keeps it from going on, for people."""

    replay: Replay
    counts: dict[str, int]
    detail: str = ""

    @property
    def ended(self) -> int:
        """Items that are over, well or not."""
        return sum(self.counts.values()) - self.counts.get(Fate.DELAYED.label, 0)


def counted(tally: Mapping[Fate, int], waiting: int, done: int, dead: int) -> dict[str, int]:
    """Number of a run's items by how they ended: the counts of its book, but for items that left for the delay service,
    which are counted by what the ledger says became of them. Items that were not to be run are left out."""
    counts = Counter({fate.label: items for fate, items in tally.items() if fate not in (Fate.FILTERED, Fate.DELAYED)})
    counts[Fate.DELAYED.label] += waiting
    counts[AFTER_DELAY] += done
    counts[Fate.DEAD.label] += dead
    return dict(+counts)
