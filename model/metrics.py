"""The numbers of the platform, each under one name: THE catalogue, and what an overview says in it.

Names, kinds and units are those of OpenTelemetry; `prometheus_text` writes them in Prometheus' text format, which names
the same thing with `_`, its unit, and `_total` for what only rises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .alert import Backlog, LevelOverview
from .overview import Overview, ReplayOverview, SpoolOverview, TailerOverview


class Metric(NamedTuple):
    """A number that is exported. `rises`: a counter, from 0 when its part starts; else a gauge. `unit` is UCUM's."""

    name: str
    rises: bool
    unit: str
    help: str

    @property
    def prometheus(self) -> str:
        """Its name there."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return self.name.replace(".", "_") + unit + ("_total" if self.rises else "")


class Sample(NamedTuple):
    """A metric's value for one set of labels."""

    metric: Metric
    labels: tuple[tuple[str, str], ...]
    value: float


def _counter(name: str, help: str) -> Metric:
    return Metric(f"tailrace.{name}", True, "{item}", help)


def _gauge(name: str, help: str, unit: str = "{item}") -> Metric:
    return Metric(f"tailrace.{name}", False, unit, help)


READ = _counter("tailer.read", "Items read from the source.")
SETTLED = _counter("tailer.settled", "Items over: done, dropped, expired, cancelled.")
PARKED = _counter("tailer.parked", "Items that left for the delay service (delayed retries).")
DEAD = _counter("tailer.dead", "Items that became dead letters.")
DROPPED = _counter("tailer.dropped", "Of the settled ones, those that an operator dropped.")
LOST = _counter("tailer.lost", "Items that the source forgot before they were done.")
UNREADABLE = _counter(
    "tailer.unreadable", "Of the items read, those whose priority or deadline cannot be read: the default counts."
)
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
IDLE = _gauge("tailer.idle", "How long nothing was done although there was work.", "s")
REPLAY_STATE = _gauge("replay.state", "1 for the state in which a replay is that is not over.", "1")
REPLAY_ITEMS = _gauge("replay.items", "Items that a replay has to run, where they could be counted.")
REPLAY_PROGRESS = _gauge("replay.progress", "Items of a replay, by how they ended, or that they wait for a retry.")
QUEUE = _gauge("queue.items", "Workloads in the queue, by state.")
DELAY = _gauge("delay.items", "Items in the delay service, by stream.")
ENDED_PEERS = _counter(
    "gateway.ended_peers", "Connections and calls that the gateway refused or ended at its bounds for peers, by which."
)
SPOOLED = _gauge("spool.items", "Workloads that the gateway took while its store was away and still has.")
SPOOL_SIZE = _gauge("spool.size", "Their payloads.", "By")
SPOOL_AGE = _gauge("spool.age", "How long the oldest of them has waited.", "s")
SPOOL_TAKEN = _counter("spool.taken", "Workloads that were spooled.")
SPOOL_BROUGHT = _counter("spool.brought", "Workloads that were brought from the spool to the store.")
SPOOL_REFUSED = _gauge("spool.refused", "Workloads of the spool that the store will never take; kept with the reason.")
WAITED = _gauge("queue.oldest_due", "How long the oldest due workload of a priority has waited.", "s")
WAIT_ALLOWED = _gauge("queue.oldest_due_allowed", "What the service level of the priority allows of that.", "s")
ATTEMPTS = _gauge("queue.most_attempts", "The most attempts that a live workload of a priority has spent.", "1")
ATTEMPTS_ALLOWED = _gauge("queue.most_attempts_allowed", "What the service level of the priority allows of that.", "1")
GROWTH = _gauge(
    "backlog.growth", "Items a second by which what waits grew in the last minutes; below 0: it shrinks.", "1"
)
EMPTY_IN = _gauge(
    "backlog.empty_in", "In how long nothing waits if that goes on; absent while it does not shrink.", "s"
)
ALERTS = _gauge("alerts", "Things to look at, by code: what `tailrace alerts` says.", "1")
LETTERS = _gauge("dead_letters", "Dead letters that are kept.")

PART_FAILURES = _counter(
    "part.failures", "How often a part was closed, and opened again, because something in it failed."
)

READY = _gauge("scheduler.ready", "1 while it knows gates and quotas and admits items, else 0.", "1")
WORKERS = _gauge("scheduler.workers", "Workers that are connected.", "{worker}")
TAILERS = _gauge("scheduler.tailers", "Sessions of tailers that are connected.", "{session}")
WAITING = _gauge("scheduler.waiting", "Items in lanes (bounded run queues), by function and priority.")
RUNNING = _gauge("scheduler.running", "Items that workers have, by function and priority.")
CLOGGED = _gauge(
    "scheduler.clogged", "1 for each function whose circuit breaker is open, because nearly all of it fails.", "1"
)
ENDED = _counter("scheduler.ended", "Items by how they ended; held: handed back unstarted.")
REASONS = _counter("scheduler.reasons", "Ends that the scheduler itself gave, by reason code.")

SESSIONS = _gauge("worker.sessions", "Schedulers that it is attached to.", "{session}")
WORKER_ENDED = _counter("worker.ended", "Items by how they ended there.")
SLOTS = _gauge("worker.slots", "How many items a pool runs at once.")
ASSIGNED = _gauge("worker.assigned", "Items that a pool has: they run, or are next.")
EXECUTORS = _gauge("worker.executors", "Processes of a pool.", "{process}")
DEATHS = _counter("worker.deaths", "Processes of a pool that died although nobody told them to.")

#: Of stores, delay service and tailers.
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
SCHEDULER = (READY, WORKERS, TAILERS, WAITING, RUNNING, CLOGGED, ENDED, REASONS)
WORKER = (SESSIONS, WORKER_ENDED, SLOTS, ASSIGNED, EXECUTORS, DEATHS)
CATALOGUE = (*NODE, *SCHEDULER, *WORKER, PART_FAILURES)

_PLACES = {metric: place for place, metric in enumerate(CATALOGUE)}


def samples(overview: Overview) -> list[Sample]:
    """Everything that an overview says, in the order of the catalogue. What is not known is left out."""
    found = [Sample(LETTERS, (), overview.dead_letters)]
    found += [Sample(QUEUE, (("state", state),), count) for state, count in overview.queue.items()]
    found += [Sample(DELAY, (("stream", stream),), count) for stream, count in overview.delay.items()]
    found += [Sample(ENDED_PEERS, (("bound", bound),), count) for bound, count in overview.ended_peers.items()]
    found += [sample for replay in overview.replays for sample in _of_replay(replay)]
    found += [sample for level in overview.levels for sample in _of_level(level)]
    found += [sample for backlog in overview.backlogs for sample in _of_backlog(backlog)]
    codes = Counter(alert.code for alert in overview.alerts)
    found += [Sample(ALERTS, (("code", code),), count) for code, count in codes.items()]
    return sorted_samples([*found, *_of_spool(overview.spool), *of_tailers(overview.tailers)])


def of_tailers(tailers: Iterable[TailerOverview]) -> list[Sample]:
    """What tailers say of themselves."""
    return sorted_samples(sample for tailer in tailers for sample in _of_tailer(tailer))


def sorted_samples(found: Iterable[Sample]) -> list[Sample]:
    """In the order of the catalogue, those of one metric together."""
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


def prometheus_text(found: Sequence[Sample]) -> str:
    """In Prometheus' text format 0.0.4. Samples of one metric stand together."""
    lines: list[str] = []
    told: Metric | None = None
    for metric, labels, value in found:
        if metric is not told:
            told = metric
            kind = "counter" if metric.rises else "gauge"
            lines += [f"# HELP {metric.prometheus} {metric.help}", f"# TYPE {metric.prometheus} {kind}"]
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
        lines.append(f"{metric.prometheus}{{{inside}}} {value:.15g}" if inside else f"{metric.prometheus} {value:.15g}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
