"""Which objects make which process: the only place that knows every folder.

`build(arguments)` makes the part a child process runs; each function below makes one part from plain arguments, for the
command line and for tests alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..sdk.lifecycle import Part
from .measured import measured
from .settings import ConfigDirectory, merged


def build(arguments: dict[str, Any]) -> Part:
    """The part a child process runs, from the JSON its parent gave it."""
    return _PARTS[arguments["part"]](arguments)


def _directory(arguments: dict[str, Any]) -> ConfigDirectory:
    path = arguments.get("config")
    return ConfigDirectory(None if path is None else Path(path))


def scheduler(arguments: dict[str, Any]) -> Part:
    """A scheduler. Arguments: listen, direct (see SchedulerConfig), gateway (None: no gates and quotas), config,
    heartbeat."""
    from ..scheduler.config import SchedulerConfig
    from ..scheduler.server import SchedulerServer
    from ..sdk.wire.gateway import watch

    directory = _directory(arguments)
    config = directory.read("scheduler.yaml", SchedulerConfig)
    config = merged(config, listen=arguments.get("listen"), direct_listen=arguments.get("direct"))
    gateway = arguments.get("gateway")
    watcher = None if gateway is None else lambda on_snapshot: watch(gateway, on_snapshot)
    server = SchedulerServer(config, directory.lease_sizes(arguments.get("heartbeat")), watcher)
    return measured(server, config.metrics_listen)


def worker(arguments: dict[str, Any]) -> Part:
    """A worker. Arguments: modules, schedulers, gateway, config, heartbeat, settings (changes to its configuration)."""
    from ..runtime.config import WorkerConfig
    from ..runtime.loader import load_functions
    from ..runtime.worker import Worker

    directory = _directory(arguments)
    config = merged(directory.read("worker.yaml", WorkerConfig), **arguments.get("settings", {}))
    worker = Worker(
        config,
        load_functions(arguments["modules"]),
        arguments["schedulers"],
        arguments.get("gateway"),
        directory.lease_sizes(arguments.get("heartbeat")),
    )
    return measured(worker, config.metrics_listen)


def metrics(arguments: dict[str, Any]) -> Part:
    """What answers GET /metrics. Arguments: listen, gateway."""
    from ..gateway.metrics_server import MetricsServer

    return MetricsServer(arguments["listen"], arguments["gateway"])


def node(arguments: dict[str, Any]) -> Part:
    """The embedded stores with everything that reads and writes them: gateway, delay service, tailers."""
    from .node import Node

    return Node(
        Path(arguments["data"]),
        _directory(arguments),
        scheduler=arguments["scheduler"],
        listen=arguments["listen"],
        tailers=[Path(path) for path in arguments.get("tailers", [])],
        heartbeat=arguments.get("heartbeat"),
    )


def delay(arguments: dict[str, Any]) -> Part:
    """The delay service over served stores. Arguments: listen, store, config."""
    from .separate import SeparateDelay

    return SeparateDelay(arguments["store"], _directory(arguments), arguments.get("listen"))


def gateway(arguments: dict[str, Any]) -> Part:
    """A gateway over served stores. Arguments: listen, store, config, data (None: it does not spool)."""
    from .separate import SeparateGateway

    data = arguments.get("data")
    return SeparateGateway(
        arguments["store"], _directory(arguments), arguments.get("listen"), None if data is None else Path(data)
    )


def tailers(arguments: dict[str, Any]) -> Part:
    """Tailers over served stores. Arguments: files, scheduler, delay, store, config, heartbeat, listen, metrics."""
    from .separate import SeparateTailers

    part = SeparateTailers(
        [Path(path) for path in arguments["files"]],
        _directory(arguments),
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

    return SeparateStore(Path(arguments["data"]), _directory(arguments), arguments.get("listen"))


_PARTS: dict[str, Callable[[dict[str, Any]], Part]] = {
    "delay": delay,
    "gateway": gateway,
    "node": node,
    "scheduler": scheduler,
    "store": store,
    "tailers": tailers,
    "worker": worker,
}
