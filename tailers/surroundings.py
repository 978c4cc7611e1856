"""The input and output of a stream tailer's core: the state that its shell sets before each event (`Surroundings`), and
the core's decisions (`Decisions`)."""

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
    """The state of the world at an event, for a core without clock and session.

    monotonic, wall  the time, seconds
    credit  the credit of the session that is up, or was up last
    idle    nothing is pushed: the tailer is paused or draining, or its row does not name the scheduler yet
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
    """Items to be pushed, with their number by cell, under a fence (0: the epoch's next one). Their credit is taken."""

    items: Items
    counts: Counter[Cell]
    fence: int = 0


@dataclass(slots=True)
class Decisions:
    """Decisions of a core since its shell last carried them out.

    pushes      items to push, in this order
    departures  items on their way out, each with the seconds until it is due again (None: never)
    commit      a frontier may have moved
    start       copies wait for their rows
    look        held items may be offered before the time for which the shell waits
    tick        something waits for a time, which may be earlier than that
    wake        anything may go on
    """

    pushes: list[Push] = field(default_factory=list)
    departures: list[tuple[Departure, float | None]] = field(default_factory=list)
    commit: bool = False
    start: bool = False
    look: bool = False
    tick: bool = False
    wake: bool = False
