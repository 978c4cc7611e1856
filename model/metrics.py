"""The numbers of the platform, each under one name: THE catalogue, and what an overview says in it.

Names, kinds and units are those of OpenTelemetry; where its conventions have a name it is theirs (`faas.`). Prometheus
names the same thing with `_`, its unit, and `_total` for what only rises (`exposition.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .alert import Backlog, LevelOverview
from .histogram import Counts, Histograms
from .overview import Overview, ReplayOverview, SpoolOverview, TailerOverview


class Metric(NamedTuple):
    """A number that is exported. `rises`: a counter, from 0 when its part starts; else a gauge, or with `bounds` of its
    buckets a histogram. `unit` is UCUM's; `labels` are named where a histogram is made by them."""

    name: str
    rises: bool
    unit: str
    help: str
    bounds: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The metric's kind in Prometheus: counter, gauge or histogram."""
        return "histogram" if self.bounds else "counter" if self.rises else "gauge"

    @property
    def prometheus(self) -> str:
        """The metric's name in Prometheus."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return self.name.replace(".", "_") + unit + ("_total" if self.rises else "")

    def histograms(self) -> Histograms:
        """New histograms of it, by label values."""
        return Histograms(self.bounds, self.labels)


class Sample(NamedTuple):
    """A metric's value for one set of labels; of a histogram it is how many values there were."""

    metric: Metric
    labels: tuple[tuple[str, str], ...]
    value: float
    counts: Counts | None = None


def _counter(name: str, help: str) -> Metric:
    return Metric(f"tailrace.{name}", True, "{item}", help)


def _gauge(name: str, help: str, unit: str = "{item}") -> Metric:
    return Metric(f"tailrace.{name}", False, unit, help)


def _histogram(name: str, help: str, labels: tuple[str, ...], bounds: tuple[float, ...]) -> Metric:
    return Metric(name, False, "s", help, bounds, labels)


#: Bounds of run times: those of the conventions for functions as a service, and some below and above, since functions
#: here may take a millisecond, or minutes.
RUN_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 1800)
#: Bounds of waits: 5 s is what an urgent item may take, and an hour is what a reporting one may.
WAIT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600)

READ = _counter("tailer.read", "Items read from the source.")
SETTLED = _counter("tailer.settled", "Items over: done, dropped, expired, cancelled.")
PARKED = _counter("tailer.parked", "Items that left for the delay service (delayed retries).")
DEAD = _counter("tailer.dead", "Items that became dead letters.")
DROPPED = _counter("tailer.dropped", "Settled items that an operator dropped.")
LOST = _counter("tailer.lost", "Items that the source forgot before they were done.")
UNREADABLE = _counter("tailer.unreadable", "Items read whose priority or deadline cannot be read: the default counts.")
STALE_WRITES = _counter(
    "tailer.stale_writes", "Writes that were refused by their fencing token: another owner had taken the source."
)
IN_FLIGHT = _gauge("tailer.in_flight", "Items pushed and without an outcome.")
HELD = _gauge("tailer.held", "Items that may not run now and rest in their source (back-pressure).")
LAG = _gauge("tailer.lag", "Items behind the end of the source (consumer lag).")
UNACCOUNTED = _gauge("tailer.unaccounted", "Positions that the running audit misses or counts twice; 0 is right.")
POSITIONS = _gauge(
    "tailer.positions", "The running audit: positions since it began, by how they ended or where they are."
)
HEALTHY = _gauge("tailer.healthy", "1 while it gets on or has nothing to do, else 0.", "1")
IDLE = _gauge("tailer.idle", "Time for which no item was done although there was work.", "s")
REPLAY_STATE = _gauge("replay.state", "1 for the current state of a replay that is not over.", "1")
REPLAY_ITEMS = _gauge("replay.items", "Items that a replay has to run, where they could be counted.")
REPLAY_PROGRESS = _gauge("replay.progress", "Items of a replay, by how they ended, or that they wait for a retry.")
QUEUE = _gauge("queue.items", "Workloads in the queue, by state.")
DELAY = _gauge("delay.items", "Items in the delay service, by stream.")
ENDED_PEERS = _counter(
    "gateway.ended_peers", "Connections and calls that the gateway refused or ended at its bounds for peers, by which."
)
SUBMIT_DURATION = _histogram(
    "tailrace.gateway.submit_duration",
    "Time from a request to a gateway until all of it was durable, or refused, by result.",
    ("result",),
    RUN_BOUNDS,
)
SUBMISSIONS = _counter(
    "gateway.submissions",
    "Submitted workloads, by function, priority and result: accepted, or refused for want of room or of the store. "
    "Mistakes of submitters are not counted.",
)
OBJECTIVE = _gauge(
    "objective.target", "The share that is to meet an objective (start_delay, accepted), by priority.", "1"
)
OBJECTIVE_DELAY = _gauge("objective.start_delay", "The start delay that the objective of a priority allows.", "s")
OBSERVED = _gauge(
    "objective.observed", "The share that met an objective in the last minutes, by function and priority.", "1"
)
SPOOLED = _gauge("spool.items", "Workloads that the gateway took while its store was away and still has.")
SPOOL_SIZE = _gauge("spool.size", "Size of the payloads of spooled workloads.", "By")
SPOOL_AGE = _gauge("spool.age", "Time that the oldest spooled workload has waited.", "s")
SPOOL_TAKEN = _counter("spool.taken", "Workloads that were spooled.")
SPOOL_BROUGHT = _counter("spool.brought", "Workloads that were brought from the spool to the store.")
SPOOL_REFUSED = _gauge("spool.refused", "Workloads of the spool that the store will never take; kept with the reason.")
WAITED = _gauge("queue.oldest_due", "Time that the oldest due workload of a priority has waited.", "s")
WAIT_ALLOWED = _gauge(
    "queue.oldest_due_allowed", "Longest wait of a due workload that the service level of the priority allows.", "s"
)
ATTEMPTS = _gauge("queue.most_attempts", "The most attempts that a live workload of a priority has spent.", "1")
ATTEMPTS_ALLOWED = _gauge(
    "queue.most_attempts_allowed", "Most attempts that the service level of the priority allows.", "1"
)
GROWTH = _gauge(
    "backlog.growth", "Items a second by which the backlog grew in the last minutes; below 0: it shrinks.", "1"
)
EMPTY_IN = _gauge(
    "backlog.empty_in", "Time until the backlog is empty if it shrinks on as now; absent while it does not shrink.", "s"
)
ALERTS = _gauge("alerts", "Alerts now, by code, as `tailrace alerts` shows them.", "1")
LETTERS = _gauge("dead_letters", "Dead letters that are kept.")

SPANS_EXPORTED = Metric("tailrace.telemetry.spans_exported", True, "{span}", "Spans that a process exported.")
SPANS_DROPPED = Metric(
    "tailrace.telemetry.spans_dropped",
    True,
    "{span}",
    "Spans that a process dropped: its queue was full, or their endpoint was away, slow or refused.",
)
PART_FAILURES = _counter(
    "part.failures", "Times that a part was closed, and opened again, because something in it failed."
)

STORE_TROUBLES = _gauge("store.troubles", "Things that are not as they should be with a store server.", "1")
STORE_HELD_LOG = _gauge(
    "store.held_log",
    "Size of a write-ahead log that an open transaction keeps from being begun anew.",
    "By",
)

READY = _gauge("scheduler.ready", "1 while it knows gates and quotas and admits items, else 0.", "1")
WORKERS = _gauge("scheduler.workers", "Workers that are connected.", "{worker}")
TAILERS = _gauge("scheduler.tailers", "Sessions of tailers that are connected.", "{session}")
WAITING = _gauge("scheduler.waiting", "Items in lanes (bounded run queues), by function and priority.")
RUNNING = _gauge("scheduler.running", "Items that workers have, by function and priority.")
CLOGGED = _gauge(
    "scheduler.clogged", "1 for each function whose circuit breaker is open, because nearly all of it fails.", "1"
)
DOWNSTREAM_RATE = _gauge(
    "downstream.rate", "Starts a second that a downstream was found to take, or the account of a tenant there.", "1/s"
)
DOWNSTREAM_STATE = _gauge(
    "downstream.state", "1 for the state of each downstream that throttled: measuring, open, closed, probing.", "1"
)
DOWNSTREAM_THROTTLED = _counter("downstream.throttled", "Items that a downstream throttled; they spent no attempt.")
DOWNSTREAM_SHRANK = _counter("downstream.shrank", "Times that the limit of a downstream shrank for throttles.")
DOWNSTREAM_UNKNOWN = _counter(
    "downstream.unknown", "Throttles that named a downstream that their function does not declare, by function."
)
RETRY_RATE = _gauge("retries.rate", "Retries of a function that may start a second, by its budget.", "1/s")
RETRIES_WAITING = _gauge("retries.waiting", "Retries of a function in a scheduler: they wait for their budget.")
START_DELAY = _histogram(
    "tailrace.start.delay",
    "Time from when items were due until they were sent to a worker, by function and priority; where the source says "
    "when.",
    ("function", "priority"),
    WAIT_BOUNDS,
)
WAIT = _histogram(
    "tailrace.scheduler.wait",
    "Time that items waited in a scheduler, by priority and by how that ended: started, or the reason they went back.",
    ("priority", "reason"),
    WAIT_BOUNDS,
)
UNITS_LEFT = _gauge("units.left", "Amount that a rate in a unit of one's own has left; below 0: a debt.", "{unit}")
UNITS_WAITING = _gauge("units.waiting", "Kinds of items that wait for a rate in a unit of one's own.", "{kind}")
USAGE_ITEMS = _counter("usage.items", "Runs that ended, by function; `tailrace usage` tells them by tenant.")
USAGE_TIME = Metric("tailrace.usage.slot_time", True, "s", "Slot-seconds: time that workers had items, by function.")
USAGE_UNITS = Metric(
    "tailrace.usage.units", True, "{unit}", "Units of one's own that runs used, by function, downstream and unit."
)
ENDED = _counter("scheduler.ended", "Items by how they ended; held: handed back unstarted.")
REASONS = _counter("scheduler.reasons", "Ends that the scheduler itself gave, by reason code.")

RUN_DURATION = _histogram(
    "faas.invoke_duration",
    "Run time of functions, by function and outcome, in all executors of a worker.",
    ("function", "outcome"),
    RUN_BOUNDS,
)
SESSIONS = _gauge("worker.sessions", "Schedulers that it is attached to.", "{session}")
WORKER_ENDED = _counter("worker.ended", "Items by how they ended there.")
SLOTS = _gauge("worker.slots", "Number of items that a pool runs at once.")
ASSIGNED = _gauge("worker.assigned", "Items that a pool has: they run, or are next.")
EXECUTORS = _gauge("worker.executors", "Processes of a pool.", "{process}")
DEATHS = _counter("worker.deaths", "Processes of a pool that died without having been told to end.")

#: Metrics of stores, delay service and tailers.
NODE = (
    READ,
    SETTLED,
    PARKED,
    DEAD,
    DROPPED,
    LOST,
    UNREADABLE,
    STALE_WRITES,
    IN_FLIGHT,
    HELD,
    LAG,
    UNACCOUNTED,
    POSITIONS,
    HEALTHY,
    IDLE,
    REPLAY_STATE,
    REPLAY_ITEMS,
    REPLAY_PROGRESS,
    QUEUE,
    DELAY,
    ENDED_PEERS,
    OBSERVED,
    SPOOLED,
    SPOOL_SIZE,
    SPOOL_AGE,
    SPOOL_TAKEN,
    SPOOL_BROUGHT,
    SPOOL_REFUSED,
    WAITED,
    WAIT_ALLOWED,
    ATTEMPTS,
    ATTEMPTS_ALLOWED,
    GROWTH,
    EMPTY_IN,
    ALERTS,
    LETTERS,
)
#: Metrics of a gateway itself.
GATEWAY = (SUBMIT_DURATION, SUBMISSIONS, OBJECTIVE, OBJECTIVE_DELAY)
#: Metrics of stores that are served apart.
STORE = (STORE_TROUBLES, STORE_HELD_LOG)
SCHEDULER = (
    READY,
    WORKERS,
    TAILERS,
    WAITING,
    RUNNING,
    CLOGGED,
    DOWNSTREAM_RATE,
    DOWNSTREAM_STATE,
    DOWNSTREAM_THROTTLED,
    DOWNSTREAM_SHRANK,
    DOWNSTREAM_UNKNOWN,
    RETRY_RATE,
    RETRIES_WAITING,
    UNITS_LEFT,
    UNITS_WAITING,
    START_DELAY,
    WAIT,
    USAGE_ITEMS,
    USAGE_TIME,
    USAGE_UNITS,
    ENDED,
    REASONS,
)
WORKER = (RUN_DURATION, SESSIONS, WORKER_ENDED, SLOTS, ASSIGNED, EXECUTORS, DEATHS)
#: Metrics of every process.
PROCESS = (PART_FAILURES, SPANS_EXPORTED, SPANS_DROPPED)
CATALOGUE = (*NODE, *GATEWAY, *STORE, *SCHEDULER, *WORKER, *PROCESS)

_PLACES = {metric: place for place, metric in enumerate(CATALOGUE)}


def samples(overview: Overview) -> list[Sample]:
    """Samples of everything in an overview, in the order of the catalogue. Unknown values are left out."""
    found = [Sample(LETTERS, (), overview.dead_letters)]
    found += [Sample(QUEUE, (("state", state),), count) for state, count in overview.queue.items()]
    found += [Sample(DELAY, (("stream", stream),), count) for stream, count in overview.delay.items()]
    found += [Sample(ENDED_PEERS, (("bound", bound),), count) for bound, count in overview.ended_peers.items()]
    found += [sample for replay in overview.replays for sample in _of_replay(replay)]
    found += [sample for level in overview.levels for sample in _of_level(level)]
    found += [sample for backlog in overview.backlogs for sample in _of_backlog(backlog)]
    found += [
        Sample(
            OBSERVED,
            (("objective", each.objective), ("function", each.function), ("priority", each.priority)),
            each.observed,
        )
        for each in overview.objectives
    ]
    codes = Counter(alert.code for alert in overview.alerts)
    found += [Sample(ALERTS, (("code", code),), count) for code, count in codes.items()]
    here = [tailer for tailer in overview.tailers if not tailer.process]  # the others have metrics of their own
    return sorted_samples([*found, *_of_spool(overview.spool), *of_tailers(here)])


def of_tailers(tailers: Iterable[TailerOverview]) -> list[Sample]:
    """Samples of the tailers' own counts and states, in the order of the catalogue."""
    return sorted_samples(sample for tailer in tailers for sample in _of_tailer(tailer))


def of_histograms(metric: Metric, found: Histograms) -> list[Sample]:
    """Samples of a metric's histograms so far, one for each set of label values."""
    return [
        Sample(metric, tuple(zip(found.names, labels, strict=True)), counts.count, counts)
        for labels, counts in found.by_labels.items()
    ]


def sorted_samples(found: Iterable[Sample]) -> list[Sample]:
    """The samples in the order of the catalogue, so that all samples of one metric stand together."""
    return sorted(found, key=lambda sample: _PLACES[sample.metric])


def _of_spool(spool: SpoolOverview) -> Iterator[Sample]:
    if not spool.state:
        return
    for metric, value in (
        (SPOOLED, spool.items),
        (SPOOL_SIZE, spool.size),
        (SPOOL_AGE, spool.age),
        (SPOOL_TAKEN, spool.taken),
        (SPOOL_BROUGHT, spool.brought),
        (SPOOL_REFUSED, spool.refused),
    ):
        yield Sample(metric, (), value)


def _of_level(level: LevelOverview) -> Iterator[Sample]:
    labels = (("priority", level.priority),)
    yield Sample(WAITED, labels, level.waited)
    yield Sample(WAIT_ALLOWED, labels, level.waited_allowed)
    yield Sample(ATTEMPTS, labels, level.attempts)
    yield Sample(ATTEMPTS_ALLOWED, labels, level.attempts_allowed)


def _of_backlog(backlog: Backlog) -> Iterator[Sample]:
    labels = (("source", backlog.name),)
    yield Sample(GROWTH, labels, backlog.growth)
    if backlog.empty_in >= 0:
        yield Sample(EMPTY_IN, labels, backlog.empty_in)


def _of_tailer(tailer: TailerOverview) -> Iterator[Sample]:
    labels = (("tailer", tailer.name), ("kind", tailer.kind))
    values: dict[Metric, float] = {
        READ: tailer.read,
        SETTLED: tailer.settled,
        PARKED: tailer.parked,
        DEAD: tailer.dead,
        DROPPED: tailer.dropped,
        LOST: tailer.lost,
        UNREADABLE: tailer.unreadable,
        STALE_WRITES: tailer.stale_writes,
        IN_FLIGHT: tailer.in_flight,
        HELD: tailer.held,
        UNACCOUNTED: tailer.unaccounted,
        HEALTHY: int(tailer.healthy),
        IDLE: tailer.idle,
    }
    if tailer.lag >= 0:
        values[LAG] = tailer.lag
    for metric, value in values.items():
        yield Sample(metric, labels, value)
    for name, count in tailer.classes.items():
        yield Sample(POSITIONS, (*labels, ("class", name)), count)


def _of_replay(replay: ReplayOverview) -> Iterator[Sample]:
    labels = (("replay", replay.name), ("tailer", replay.tailer))
    yield Sample(REPLAY_STATE, (*labels, ("state", replay.state)), 1)
    if replay.items >= 0:
        yield Sample(REPLAY_ITEMS, labels, replay.items)
    for name, count in replay.counts.items():
        yield Sample(REPLAY_PROGRESS, (*labels, ("class", name)), count)
