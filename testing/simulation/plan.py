"""The plan of a world: its hosts, its items and their deeds, its faults. Plain data made from a seed, so that a story
can be told again with less in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .deed import OK, Deed
from .plan_trees import TreePlan

#: Seconds after which items are passed unless a plan says otherwise: beyond most that run in a story.
DETACH_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Item:
    """A workload: submitted `at` true seconds to `source` (`queue`, or a stream by name). Execution i does
    `deeds[i]`, those after the last one succeed. `delay`: a queue's item is due so much after it was submitted. A
    stream's item may have a priority, and may not start `expires` seconds after it was appended (0: it always may).
    `cancel`: a queue's item is cancelled so many seconds after it was accepted (0: never). `fits`: the arguments are
    those of the `old` version of the function, of the `new` one, or of `neither`."""

    n: int
    source: str
    at: float
    deeds: tuple[Deed, ...] = ()
    delay: float = 0.0
    key: str = ""
    priority: str = ""
    expires: float = 0.0
    cancel: float = 0.0
    fits: str = "old"

    def deed(self, execution: int) -> Deed:
        """The deed of its execution number `execution` (from 0)."""
        return self.deeds[execution] if execution < len(self.deeds) else OK


@dataclass(frozen=True, slots=True)
class Timed:
    """A schedule, made `at` true seconds: its runs are due each `every` seconds, or by `cron` (UTC), from `starts` to
    `until` true seconds. Every run of it does `deeds`. The rest is as in model/schedule.py."""

    n: int
    at: float
    starts: float
    until: float
    every: float = 0.0
    cron: str = ""
    overlap: str = "skip"
    catch_up: str = "skip"
    catch_up_max: int = 2
    grace: float = 5.0
    max_runs: int = 0
    deeds: tuple[Deed, ...] = ()

    @property
    def name(self) -> str:
        """The name of the schedule, and the key of its runs."""
        return f"timed{self.n}"

    def deed(self, execution: int) -> Deed:
        """The deed of execution number `execution` (from 0) of any run."""
        return self.deeds[execution] if execution < len(self.deeds) else OK


@dataclass(frozen=True, slots=True)
class ShopOrder:
    """A transaction of the application's own, `at` true seconds, which leaves a workload in its outbox; or none, if it
    is `rolled_back`. Execution i does `deeds[i]`, those after the last one succeed."""

    n: int
    at: float
    deeds: tuple[Deed, ...] = ()
    key: str = ""
    rolled_back: bool = False

    def deed(self, execution: int) -> Deed:
        """The deed of its execution number `execution` (from 0)."""
        return self.deeds[execution] if execution < len(self.deeds) else OK


@dataclass(frozen=True, slots=True)
class Redrive:
    """A request of the operator `at` true seconds: the dead letters of a tailer (empty: all), `step` at a time. `once`:
    the operator gives up when a step is not answered."""

    at: float
    tailer: str = ""
    step: int = 100
    once: bool = False


@dataclass(frozen=True, slots=True)
class LimitApplied:
    """A quota of the function from `at` on, true seconds: so many runs at once."""

    at: float
    concurrency: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: something goes wrong `at` true seconds, for so many `seconds`.

    kill, restart   a host's process dies, silently (its machine with it) if `number`; it is back after `seconds`
    freeze          a host's process stands still
    executors       one executor of a worker: killed (`what` kill) or frozen (`what` freeze), also with its supervisor
                    (`what` all)
    cut             nothing goes from `host` to `other`
    both            nothing goes either way
    reset           all connections between two hosts break
    weather         `what` of the network's Weather is `amount` for so long
    point           the host's process dies at the `number`th moment named `what` from then on
    jump            a host's wall clock jumps by `amount` seconds
    copy            `what` of the stores' files (several: with blanks between) are copied, as a backup would
    restore         the stores' process dies, and finds those copies in the place of its files when it is back; who
                    submitted something since then is told, and does so again
    clone           the disk of `host` becomes a copy of that of `other`, and its process is started after `seconds`;
                    `other` has nothing any more if `number`
    drain           the process is ended with SIGTERM's drain, and started again
    pause           an operator's gate pauses the function
    outage          whatever runs fails
    zombie          what `host` sends to `other` within `amount` seconds from then on lands `seconds` later, whatever
                    becomes of `host`, which is told at once that its connection broke
    busy, full      the file named `what` is locked by somebody, or has no room
    writer          the writer of the file named `what` ends by itself in its next commit, before it, or after it if
                    `number`; its stores are closed and opened again by their process
    power           the power of `host`'s machine is cut in the middle of the next commit of any file, and is there
                    again after `seconds`: what was being written is there, torn, or not at all
    steer           what is sent to the front of `host`'s kind goes to it from then on
    """

    at: float
    kind: str
    host: str = ""
    other: str = ""
    seconds: float = 0.0
    what: str = ""
    amount: float = 0.0
    number: int = 0

    def __str__(self) -> str:
        parts = [self.kind, self.host, self.other, self.what]
        parts += [f"{self.seconds:.2f} s"] if self.seconds else []
        parts += [f"{self.amount:g}"] if self.amount else []
        parts += [f"#{self.number}"] if self.number else []
        return f"{self.at:.3f} " + " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Plan:
    """One story. Faults are over at `calm`; from then on everything must end within `patience` seconds.

    apart   the stores, the delay service and so many `tailers`, each with all sources, are processes of their own, and
            tailer number i pushes to scheduler number i; else they are one node
    front   the schedulers stand behind one address, which every tailer dials: each connection finds another of them
    gateways, delays   so many gateways, through which the queue's items are brought (0: they go to the store); so many
            delay services, if apart. Each kind stands behind one address
    order   of the stream's tailer: none, key or partition
    detach_after  seconds after which an item of the stream is passed while it runs, as in tailers/config.py
    urgent  the stream's items have their own priorities and deadlines; what expired becomes a dead letter
    timeout     of the function, seconds; 0: none
    threads     the function is a `def`
    schedules   what runs by the clock; their numbers are above those of the items
    redrives    what an operator asks a gateway for; there is one then
    spools      gateways keep what the store cannot take while it is away
    orders      what an application takes and leaves in its outbox; their numbers are above all others
    trees   trees of jobs that a client makes; the numbers of their items are above all others
    limits  quotas of the function, one after the other; none: it has none
    clones  beside the others there are a node and, once there is one, a copy of it, which bind their logs to a state
    rolled  a worker whose process was started again has the new version of the function
    log_retention   seconds for which records of the log are kept; 0: as usual, longer than any story
    rates   seconds that a machine's clock counts in a true one
    """

    seed: int
    items: tuple[Item, ...]
    faults: tuple[Fault, ...] = ()
    apart: bool = False
    tailers: int = 2
    schedulers: int = 1
    workers: int = 2
    executors: int = 1
    slots: int = 4
    front: bool = False
    gateways: int = 0
    delays: int = 1
    order: str = "none"
    detach_after: float = DETACH_AFTER
    urgent: bool = False
    timeout: float = 0.0
    threads: bool = False
    schedules: tuple[Timed, ...] = ()
    redrives: tuple[Redrive, ...] = ()
    orders: tuple[ShopOrder, ...] = ()
    spools: bool = False
    trees: tuple[TreePlan, ...] = ()
    limits: tuple[LimitApplied, ...] = ()
    clones: bool = False
    rolled: bool = False
    log_retention: float = 0.0
    rates: dict[str, float] = field(default_factory=dict)
    calm: float = 60.0
    patience: float = 300.0


__all__ = [
    "DETACH_AFTER",
    "OK",
    "Deed",
    "Fault",
    "Item",
    "LimitApplied",
    "Plan",
    "Redrive",
    "ShopOrder",
    "Timed",
]
