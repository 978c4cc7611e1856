"""Surroundings of a stream tailer's core: what its shell tells it before each event, and what the core decided then."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model.demand import Cell
from .departures.departure import Departure
from .items import Items
from .rules.credit import Credit


@dataclass(slots=True)
class Surroundings:
    """The state of the world at an event. The core has no clock and no session: it knows these.

    monotonic, wall  the time, seconds
    credit  of the session that is up, or was last
    idle    nothing is pushed: paused, draining, or the row does not name the scheduler yet
    active  items are read and offered, as far as there is credit
    may_push  the row names the scheduler of the session
    """

    monotonic: float = 0.0
    wall: float = 0.0
    credit: Credit = field(default_factory=Credit)
    idle: bool = True
    active: bool = False
    may_push: bool = False


class Push(NamedTuple):
    """Items to be pushed, under this fence (0: the epoch's next one), and how many there are of each cell. Their credit
    is taken."""

    items: Items
    counts: Counter[Cell]
    fence: int = 0


@dataclass(slots=True)
class Decisions:
    """Decisions of a core since its shell last carried them out.

    pushes      as the core chose them, in this order
    departures  on their way out, each with the seconds until it is due again (None: it never is)
    commit      a frontier may have moved
    start       copies wait for their rows
    look        what is held may be offered before the time that was waited for
    tick        likewise, something waits for a time
    wake        anything may go on
    """

    pushes: list[Push] = field(default_factory=list)
    departures: list[tuple[Departure, float | None]] = field(default_factory=list)
    commit: bool = False
    start: bool = False
    look: bool = False
    tick: bool = False
    wake: bool = False
