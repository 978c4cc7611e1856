"""The rivals, by the engine that holds the items: the programs of each, and the libraries it needs."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field

from ...model.errors import ConfigError, InvalidRequest

Program = tuple[str, ...]  # arguments of Python


@dataclass(frozen=True, slots=True)
class Rival:
    """A rival. `programs` run side by side, `needs` are the modules that must be installed, `share` is the share of the
    items that it gets, so that a slow one takes no hour. `redis`: it needs a Redis beside Kafka. `feeder` submits to it
    where the items rest in a queue (`feeding.py`), `variables` go into the environment of its programs. `chord`: its
    programs that gather results, where it can."""

    name: str
    programs: tuple[Program, ...]
    needs: tuple[str, ...]
    share: float = 1.0
    redis: bool = False
    feeder: Program = ()
    variables: dict[str, str] = field(default_factory=dict)
    chord: Rival | None = None


def _module(command: str) -> Program:
    """A module as a program, with its arguments; {here} is this package."""
    return ("-m", *command.format(here=__package__).split())


#: A worker of two processes; as it is the only one, it needs no news of others.
_CELERY = "worker --concurrency 2 --loglevel ERROR --without-gossip --without-mingle --without-heartbeat"

#: Two processes each, for two cores; beside Kafka, Celery's worker has two and the loop that feeds it is a third.
KAFKA = (
    Rival("loop", (_module("{here}.kafka_loop"),) * 2, ("kafka",)),
    Rival("faststream", (_module("{here}.kafka_faststream"),) * 2, ("faststream", "confluent_kafka"), 0.1),
    Rival("faststream_batch", (_module("{here}.kafka_faststream_batch"),) * 2, ("faststream", "confluent_kafka"), 0.5),
    Rival(
        "celery",
        (_module("celery --app {here}.kafka_celery " + _CELERY), _module("{here}.kafka_celery")),
        ("celery", "redis", "kafka"),
        0.02,
        redis=True,
    ),
)
#: Threads, tasks at once and other settings not named here are each one's own default.
REDIS = (
    Rival(
        "celery",
        (_module("celery --app {here}.redis_celery " + _CELERY),),
        ("celery", "redis"),
        0.1,
        feeder=_module("{here}.redis_celery"),
        chord=Rival(
            "celery",
            (_module("celery --app {here}.redis_celery_chord " + _CELERY),),
            ("celery", "redis"),
            feeder=_module("{here}.redis_celery_chord"),
        ),
    ),
    Rival(
        "dramatiq",
        (_module("dramatiq {here}.redis_dramatiq --processes 2"),),
        ("dramatiq", "redis"),
        0.1,
        feeder=_module("{here}.redis_dramatiq"),
        # By default twice the threads, for work that waits; these are many short ones.
        variables={"dramatiq_queue_prefetch": "128"},
    ),
    Rival(
        "taskiq",
        (_module("taskiq worker {here}.redis_taskiq:broker --workers 2 --log-level WARNING"),),
        ("taskiq", "taskiq_redis", "uvloop"),
        0.2,
        feeder=_module("{here}.redis_taskiq"),
    ),
    Rival(
        "rq",
        # Its usual worker forks a process for each job, which no other one here does; this one runs it in its own.
        (_module("rq.cli worker-pool -n 2 --worker-class rq.SimpleWorker --quiet --config {here}.redis_rq"),),
        ("rq", "redis"),
        0.01,
        feeder=_module("{here}.redis_rq"),
    ),
)
POSTGRES = (
    Rival(
        "procrastinate",
        # So that settling one job waits for the disk while the next ones run.
        (_module("procrastinate --log-level warning --app {here}.postgres_procrastinate.app worker -c 10"),) * 2,
        ("procrastinate", "psycopg", "psycopg_pool"),
        0.05,
        feeder=_module("{here}.postgres_procrastinate"),
    ),
)
#: The rivals by engine; Redis has the same ones whenever it writes to its disk.
RIVALS = {"kafka": KAFKA, "redis": REDIS, "redis-everysec": REDIS, "postgres": POSTGRES}


def chosen(names: str, engine: str = "kafka") -> list[Rival]:
    """The rivals of an engine that `names` lists, with commas between; all for an empty text. Raises InvalidRequest for
    an unknown name and an engine that has none, ConfigError when a library is not installed."""
    if engine not in RIVALS:
        raise InvalidRequest(f"unknown engine {engine!r} of rivals: expected one of {', '.join(RIVALS)}")
    known = {rival.name: rival for rival in RIVALS[engine]}
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    for name in wanted:
        if name not in known:
            raise InvalidRequest(f"unknown rival {name!r} on {engine}: expected some of {', '.join(known)}")
    rivals = [known[name] for name in dict.fromkeys(wanted)]
    missing = {need for rival in rivals for need in rival.needs if importlib.util.find_spec(need) is None}
    if missing:
        lacking = [rival.name for rival in rivals if missing.intersection(rival.needs)]
        raise ConfigError(f"to compare with {', '.join(lacking)}, install {', '.join(sorted(missing))}: `make rivals`")
    return rivals
