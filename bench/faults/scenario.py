"""The scenarios of `tailrace bench` that break the platform on purpose, such as `faults`, `restarts` and
`host_faults`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ...model.errors import ConfigError, InvalidRequest
from ..sigterm import until_told
from ..surroundings import surroundings
from . import plan, streams_plan
from .report import broken, figures, show
from .run import FaultRun, run
from .streams_plan import Mix
from .world import FaultWorld

#: The usual size of each scenario: items, faults.
USUAL = {
    "faults": (2000, 12),
    "restarts": (4000, 100),
    "host_faults": (2000, 10),
    "kafka_faults": (4000, 14),
    "redis_stream_faults": (4000, 12),
}
#: Scenarios whose queue may be on a server.
ON_ENGINES = ("faults", "host_faults")
#: Items of each of the two times without faults that come first in scenarios of streams on servers.
CALM = 1000


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """The options of a run. None: as usual; a seed of None is chosen and printed. `brokers`: nodes of Kafka, one or
    three; `engine`: the engine of the queue in `faults`; `children`: some functions start processes, which must not
    outlive their leases either."""

    scenario: str = "faults"
    items: int | None = None
    faults: int | None = None
    seed: int | None = None
    heartbeat: float = 0.5
    brokers: int = 1
    engine: str = ""
    data: Path | None = None
    children: bool = True
    as_json: bool = False


def main(options: FaultOptions) -> int:
    """Runs and prints. Exit status 0 when every law held, 1 otherwise: then its folder is kept, also a temporary
    one."""
    usual_items, usual_faults = USUAL[options.scenario]
    count = usual_items if options.items is None else options.items
    faults = usual_faults if options.faults is None else options.faults
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    rolling = options.scenario == "restarts"
    if options.engine and options.scenario not in ON_ENGINES:
        raise InvalidRequest(f"--engine is for the scenarios {', '.join(ON_ENGINES)}, not for {options.scenario}")
    planned = _PLANS.get(options.scenario, _plan)(options, count, faults, seed)
    if options.children:
        planned = planned._replace(items=plan.with_children(planned.items))

    async def go(folder: Path) -> FaultRun:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(options.scenario, total=1.0)

            def say(what: str, share: float) -> None:
                progress.update(task, description=f"{options.scenario}: {what}", completed=share)

            return await run(planned.make(folder), planned.items, planned.steps, seed, say, planned.calm)

    if options.data is not None:
        options.data.mkdir(parents=True, exist_ok=True)
        if any(options.data.iterdir()):
            raise ConfigError(f"{options.data} is not empty: give --data a folder that does not exist yet")
    folder = Path(tempfile.mkdtemp(prefix="tailrace-faults-")) if options.data is None else options.data.resolve()
    around = surroundings(folder)
    try:
        result = until_told(asyncio.run, go(folder))
    except BaseException:
        if options.data is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    result.skipped |= planned.skipped
    if options.as_json:
        print(json.dumps({"scenario": options.scenario, **around, **figures(result)}))
    else:
        show(result, attempts=rolling)
    wrong = broken(result, attempts=rolling)
    if options.data is None and not wrong:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    (folder / "report.json").write_text(json.dumps(figures(result), indent=1))
    (folder / "findings.txt").write_text("".join(f"{finding}\n" for finding in result.verdict.findings))
    (folder / "faults.txt").write_text("".join(f"{fault}\n" for fault in result.faults))
    if wrong:
        print(f"data, journals, logs and findings are kept in {folder}", file=sys.stderr)
    return 1 if wrong else 0


class _Planned(NamedTuple):
    """The items and steps of a run, and `make` for the world in which they are done."""

    items: list[plan.FedItem]
    steps: list[plan.FaultStep]
    make: Callable[[Path], FaultWorld]
    calm: dict[str, list[plan.FedItem]]
    skipped: dict[str, str]


def _plan(options: FaultOptions, count: int, faults: int, seed: int) -> _Planned:
    items = plan.items(count, seed)
    make: Callable[[Path], FaultWorld] = partial(FaultWorld, heartbeat=options.heartbeat)
    if options.scenario == "restarts":
        # The crashes of killers would be taken for charges.
        mild = [item for item in items if item.function != "killer"]
        return _Planned(mild, plan.restarts(faults, seed), make, {}, {})
    if options.engine:
        make = _on_engine(options)
    without = () if os.geteuid() == 0 and sys.platform == "linux" else ("disk",)
    skipped = dict.fromkeys(without, "a disk that can be filled needs Linux and root")
    steps = plan.faults(faults, seed, without, server=bool(options.engine))
    return _Planned(items, steps, make, {}, skipped)


def _over_hosts(options: FaultOptions, count: int, faults: int, seed: int) -> _Planned:
    from . import hosts_plan
    from .hosts_world import HostsOnServer, HostsWorld  # certificates need an extra

    make: Callable[[Path], FaultWorld] = partial(HostsWorld, heartbeat=options.heartbeat)
    server = options.engine not in ("", "sqlite")
    if server:
        make = partial(HostsOnServer, heartbeat=options.heartbeat, engine=_engine(options))
    steps = hosts_plan.faults(faults, seed, server=server)
    return _Planned(plan.items(count, seed), steps, make, {}, {})


def _on_engine(options: FaultOptions) -> Callable[[Path], FaultWorld]:
    from .server_world import ServerWorld

    return partial(ServerWorld, heartbeat=options.heartbeat, engine=_engine(options))


def _engine(options: FaultOptions) -> str:
    from ..queue_engines import NODES  # each needs its extra

    if options.engine not in NODES:
        raise InvalidRequest(f"--engine {options.engine}: faults kill a server, so expected {' or '.join(NODES)}")
    return options.engine


def _with_kafka(options: FaultOptions, count: int, faults: int, seed: int) -> _Planned:
    from ..kafka_jars import HOW, NoKafka, jars
    from .kafka_plan import MIX, brokers_of
    from .kafka_world import KafkaWorld  # needs the extra kafka

    try:
        jars()
    except NoKafka as error:
        raise ConfigError(f"this run kills brokers of its own, and Kafka is not installed: {error}; {HOW}") from error
    make = partial(KafkaWorld, heartbeat=options.heartbeat, brokers=options.brokers)
    return _with_streams(MIX, brokers_of(options.brokers), make, count, faults, seed)


def _with_redis_streams(options: FaultOptions, count: int, faults: int, seed: int) -> _Planned:
    from .redis_stream_plan import MIX, SERVER
    from .redis_stream_world import RedisStreamWorld  # needs the extra redis

    make = partial(RedisStreamWorld, heartbeat=options.heartbeat)
    return _with_streams(MIX, (SERVER,), make, count, faults, seed)


def _with_streams(
    mix: Mix, servers: Sequence[str], make: Callable[[Path], FaultWorld], count: int, faults: int, seed: int
) -> _Planned:
    quiet = CALM if faults >= mix.whole else CALM // 5
    calm = {name: streams_plan.calm(quiet, seed, mix, poison=name == "poison") for name in ("healthy", "poison")}
    steps = streams_plan.faults(faults, seed, mix, servers)
    return _Planned(streams_plan.items(count, seed, mix), steps, make, calm, {})


#: Plans of the scenarios that are not around the platform's own log and queue, or not on one machine.
_PLANS = {"host_faults": _over_hosts, "kafka_faults": _with_kafka, "redis_stream_faults": _with_redis_streams}
