"""A claim on items of a queue: what a lease hands over, how it is renewed, and how each item is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from .workload import Extra, Kind


class State(IntEnum):
    """The numbers are in the stores and never change meaning. Live states are below 10."""

    NEW = 0
    RETRIABLE_FAILURE = 1
    ENQUEUED = 2
    PROCESSING = 4
    SUCCESS = 10
    FATAL_FAILURE = 11
    CANCELLED = 12
    DROPPED = 13
    EXPIRED = 14

    @property
    def label(self) -> str:
        """The name users see."""
        return self.name.lower()


@dataclass(slots=True)
class Leased:
    """A claim: parallel lists under one fence, which is max(every older fence + 1, server time in µs).

    `lease` is how many seconds the claim lasts from when the caller *sent* its request.
    """

    fence: int
    lease: float
    kinds: list[Kind]
    ids: list[str]
    payloads: list[bytes]
    attempts: list[int]
    extras: dict[int, Extra] = field(default_factory=dict)
    dues: Sequence[float] = ()  # when a few of them were due, wall clock seconds (`due_times.py`); empty: not known
    jobs: Sequence[int] = ()  # indexes of items of jobs, whose results travel with their settlements
    max_failures: dict[int, int] = field(default_factory=dict)  # by index, of those whose jobs bound it


class Settle(NamedTuple):
    """The settlement of a leased item that did not plainly succeed.

    state     where it goes: NEW (handed back, free of charge), RETRIABLE_FAILURE, FATAL_FAILURE, CANCELLED, DROPPED,
              EXPIRED, or SUCCESS
    delay     seconds before it may be leased again, counted by the store from when it reads this: no clock but its own
              decides; ignored by terminal states. 0: at once, and before all that is due in its lane, since it had its
              turn
    attempts  failed attempts so far; crashes and throttles likewise
    outcome   the outcome's name, kept as one of the item's tries when it goes back; empty: it was no try
    result    what an item of a job returned, with SUCCESS; it is stored together with the end
    """

    id: str
    fence: int
    state: State
    delay: float = 0.0
    attempts: int = 0
    crashes: int = 0
    reason: str = ""
    progress: str = ""
    throttles: int = 0
    outcome: str = ""
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class ResultSettlement:
    """The answer to a settlement of items of jobs with their results: the ids that were refused, and why, by id, those
    ended as failures of whose results no item can be made."""

    refused: list[str]
    unfit: dict[str, str] = field(default_factory=dict)


class Renewed(NamedTuple):
    """The answer to a renewal: `lease` seconds from when the request was sent; `lost` ids are no longer the caller's;
    `cancel` ids are to be cancelled by whoever runs them."""

    lease: float
    lost: list[str]
    cancel: list[str]
