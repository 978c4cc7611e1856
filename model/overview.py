"""Overviews of what rests where, for live views: the queue's states, the tailers, the delay streams."""

from __future__ import annotations

from dataclasses import dataclass, field

from .alert import Alert, Backlog, LevelOverview, ObjectiveOverview


@dataclass(slots=True)
class TailerOverview:
    """One tailer. Counts are since it started; `lag` is how many items it is behind its source's end, -1: unknown;
    `since`: wall clock seconds since when a function of it is clogged, 0: none is; `idle`: seconds without a completion
    although there was work. Once that is too long it is not `healthy`, for the likely `cause` (a code) `why`.
    `unaccounted`: how many positions the running audit misses or counts twice; `classes`: all others since it began,
    by how they ended or where they are.

    state  starting | running | clogged (it gets nowhere, see `shown_state`) | paused | draining | disconnected | failed
    """

    name: str
    kind: str
    state: str
    read: int = 0
    settled: int = 0
    parked: int = 0
    dead: int = 0
    dropped: int = 0
    lost: int = 0
    in_flight: int = 0
    held: int = 0
    lag: int = -1
    detail: str = ""
    since: float = 0.0
    healthy: bool = True
    idle: float = 0.0
    cause: str = ""
    why: str = ""
    stale_writes: int = 0  # refused by a store because another owner had taken the source
    unreadable: int = 0  # records with a priority or a deadline that cannot be read: the default counted
    unaccounted: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    ages: list[tuple[str, int, float, int]] = field(default_factory=list)  # of retries: see tailers/ageing.py
    process: str = ""  # where it runs, if that is another process than the gateway's

    @property
    def shown_state(self) -> str:
        """The state as people are told it: `clogged` is said of a broken function alone, else it is `waiting`."""
        return "waiting" if self.state == "clogged" and not self.since else self.state


@dataclass(slots=True)
class SpoolOverview:
    """A gateway's spool. `state`: clear (nothing is spooled) | filling (the store is away) | draining; empty: there is
    no spool. `size` in bytes of payload, `age` of the oldest in seconds; `taken` and `brought` to the store since the
    gateway started; `refused` ones the store will never take, and are kept with their reasons."""

    state: str = ""
    items: int = 0
    size: int = 0
    age: float = 0.0
    taken: int = 0
    brought: int = 0
    refused: int = 0


@dataclass(slots=True)
class ReplayOverview:
    """One replay that is not over: of whose `tailer`, how many `items` there are to run (-1: nobody counted), and how
    many of them ended in which way, or wait for a retry."""

    name: str
    tailer: str
    state: str
    items: int = -1
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Overview:
    """The platform at one moment. `queue` counts by state, and is empty while the store does not answer a gateway with
    a spool; `delay` counts by delay stream. `levels`: each priority against its service level, the most urgent first;
    empty like `queue`. `ended_peers` counts what the gateway refused or ended at its bounds for peers, by which.
    `objectives`: the shares that met each in the last minutes.
    `held_logs`: of each database whose write-ahead log somebody keeps from being begun anew, the log's bytes and other
    processes that have it open; only the node itself knows, others are told by the alerts."""

    queue: dict[str, int] = field(default_factory=dict)
    tailers: list[TailerOverview] = field(default_factory=list)
    delay: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    spool: SpoolOverview = field(default_factory=SpoolOverview)
    replays: list[ReplayOverview] = field(default_factory=list)
    levels: list[LevelOverview] = field(default_factory=list)
    backlogs: list[Backlog] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    ended_peers: dict[str, int] = field(default_factory=dict)
    held_logs: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    objectives: list[ObjectiveOverview] = field(default_factory=list)
