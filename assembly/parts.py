"""Parts: which objects make which process. The only place that knows every folder.

`build(arguments)` makes the part a child process runs; each function below makes one part from plain arguments, for the
command line and for tests alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..sdk.lifecycle import Part
from .entering import run_dir_of
from .measured import measured
from .posting import Told
from .remade import Remade, Tell
from .settings import ConfigDirectory, merged


def build(arguments: dict[str, Any]) -> Part:
    """The part a child process runs, from the JSON its parent gave it."""
    return _PARTS[arguments["part"]](arguments)


def directory_of(arguments: dict[str, Any]) -> ConfigDirectory:
    """The configuration directory that it is told of."""
    path = arguments.get("config")
    return ConfigDirectory(None if path is None else Path(path))


def scheduler(arguments: dict[str, Any]) -> Part:
    """A scheduler. Arguments: listen, direct (see SchedulerConfig), gateway (None: no gates and quotas), config,
    heartbeat."""
    from ..scheduler.config import SchedulerConfig
    from ..scheduler.server import SchedulerServer
    from ..sdk.wire.gateway import watch

    directory = directory_of(arguments)
    config = directory.read("scheduler.yaml", SchedulerConfig)
    config = merged(config, listen=arguments.get("listen"), direct_listen=arguments.get("direct"))
    gateway = arguments.get("gateway")
    watcher = None if gateway is None else lambda on_snapshot: watch(gateway, on_snapshot)
    sizes = directory.lease_sizes(arguments.get("heartbeat"))

    def make(before: SchedulerServer | None) -> SchedulerServer:
        known = {} if before is None else before.listening
        return SchedulerServer(merged(config, **known), sizes, watcher)

    home = "without a gateway" if gateway is None else f"gateway at {gateway}"
    told = Told(run_dir_of(directory), "scheduler", home, Remade(make, _telling(gateway)))
    return measured(told, config.metrics_listen)


def worker(arguments: dict[str, Any]) -> Part:
    """A worker. Arguments: modules, schedulers, gateway, config, heartbeat, settings (changes to its configuration),
    guard (the process's own)."""
    from ..runtime.config import WorkerConfig
    from ..runtime.loader import load_functions
    from ..runtime.worker import Worker

    directory = directory_of(arguments)
    config = merged(directory.read("worker.yaml", WorkerConfig), **arguments.get("settings", {}))
    loaded, sizes = load_functions(arguments["modules"]), directory.lease_sizes(arguments.get("heartbeat"))

    def make(before: Worker | None) -> Worker:
        to, guard = arguments["schedulers"], arguments.get("guard")
        return Worker(config, loaded, to, arguments.get("gateway"), sizes, guard=guard)

    return measured(Remade(make, _telling(arguments.get("gateway"))), config.metrics_listen)


def _telling(gateway: str | None) -> Tell | None:
    """What tells the gateway that a part failed and is open again."""
    from .telling import tell_failure

    return None if gateway is None else partial(tell_failure, gateway)


def metrics(arguments: dict[str, Any]) -> Part:
    """What answers GET /metrics. Arguments: listen, gateway."""
    from ..gateway.metrics_server import MetricsServer

    return MetricsServer(arguments["listen"], arguments["gateway"])


def node(arguments: dict[str, Any]) -> Part:
    """The embedded stores with everything that reads and writes them: gateway, delay service, tailers."""
    from .node import Node

    return Node(
        Path(arguments["data"]),
        directory_of(arguments),
        scheduler=arguments["scheduler"],
        listen=arguments["listen"],
        tailers=[Path(path) for path in arguments.get("tailers", [])],
        heartbeat=arguments.get("heartbeat"),
    )


def delay(arguments: dict[str, Any]) -> Part:
    """The delay service over served stores. Arguments: listen, store, config."""
    from .separate import SeparateDelay

    return SeparateDelay(arguments["store"], directory_of(arguments), arguments.get("listen"))


def gateway(arguments: dict[str, Any]) -> Part:
    """A gateway over served stores. Arguments: listen, store, config, data (None: it does not spool)."""
    from .separate import SeparateGateway

    data = arguments.get("data")
    return SeparateGateway(
        arguments["store"], directory_of(arguments), arguments.get("listen"), None if data is None else Path(data)
    )


def tailers(arguments: dict[str, Any]) -> Part:
    """Tailers over served stores. Arguments: files, scheduler, delay, store, config, heartbeat, listen, metrics."""
    from .separate import SeparateTailers

    part = SeparateTailers(
        [Path(path) for path in arguments["files"]],
        directory_of(arguments),
        scheduler=arguments["scheduler"],
        delay=arguments["delay"],
        store=arguments["store"],
        heartbeat=arguments.get("heartbeat"),
        listen=arguments.get("listen"),
    )
    return measured(part, arguments.get("metrics") or "")


def store(arguments: dict[str, Any]) -> Part:
    """Embedded stores, served. Arguments: listen, data, config."""
    from .separate import SeparateStore

    return SeparateStore(Path(arguments["data"]), directory_of(arguments), arguments.get("listen"))


_PARTS: dict[str, Callable[[dict[str, Any]], Part]] = {
    "delay": delay,
    "gateway": gateway,
    "node": node,
    "scheduler": scheduler,
    "store": store,
    "tailers": tailers,
    "worker": worker,
}
