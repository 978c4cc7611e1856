"""Foreground runs of the command line: one part, or the whole platform. Each returns an exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..sdk import loop, telemetry
from ..sdk.lifecycle import Part
from . import parts
from .entering import enter
from .files import addresses, read_all
from .interpreter import loading, settle_in
from .platform import Platform
from .running import Signals, run
from .settings import ConfigDirectory, unread

#: Where the delay service and the stores are looked for when nothing is said.
DEFAULT_PORTS = {"delay": "127.0.0.1:8789", "store": "127.0.0.1:8790"}


def run_up(functions: Sequence[str], config: Path | None, data: Path, as_json: bool) -> int:
    """The whole platform here, until a signal. `data` rests when it ends; the next `up` goes on from there."""
    say = _sayer(as_json)
    if config is None and (folder := unread(Path())) is not None:
        say("tailrace", "defaults", f"the files in {folder}/ are not read: to use them, add --config {folder}")
    ports = addresses(read_all(ConfigDirectory(config)))  # bad files end it here, before anything is started
    os.environ.setdefault(telemetry.FORMAT_VARIABLE, "json" if as_json else "text")  # the children's logs, like its own
    platform = Platform(data, functions, config, ports=ports, on_event=say)

    def started() -> None:
        say("tailrace", "ready", f"gateway {platform.gateway_address}, scheduler {platform.scheduler_address}")

    return _run(platform, started)


def run_scheduler(listen: str | None, gateway: str | None, config: Path | None) -> int:
    """A scheduler; without a gateway it has no gates and no quotas."""
    return _part("scheduler", parts.scheduler, listen=listen, gateway=gateway, config=config)


def run_worker(modules: Sequence[str], schedulers: Sequence[str], gateway: str, config: Path | None) -> int:
    """A worker that runs the functions of the modules. This process becomes its guard, a child of it the worker."""
    from ..runtime.guarding import under_guard

    return _part(
        "worker",
        parts.worker,
        modules=list(modules),
        schedulers=list(schedulers),
        gateway=gateway,
        config=config,
        guard=under_guard(),
    )


def run_delay(listen: str | None, store: str | None, config: Path | None) -> int:
    """The delay service over the stores served at `store`."""
    return _part("delay", parts.delay, listen=listen, store=store or DEFAULT_PORTS["store"], config=config)


def run_gateway(listen: str | None, store: str | None, config: Path | None, data: Path) -> int:
    """A gateway over the stores served at `store`; it spools in `data` while they are away."""
    store = store or DEFAULT_PORTS["store"]
    return _part("gateway", parts.gateway, listen=listen, store=store, config=config, data=str(data))


def run_metrics(listen: str, gateway: str) -> int:
    """Answers GET /metrics at `listen`, until a signal."""
    return _part("metrics", parts.metrics, listen=listen, gateway=gateway, config=None)


def run_tailers(
    files: Sequence[Path],
    scheduler: str,
    delay: str | None,
    store: str | None,
    config: Path | None,
    listen: str | None = None,
    metrics: str | None = None,
) -> int:
    """Tailers over the stores served at `store`, with the delay service at `delay`; health checks at `listen`, GET
    /metrics at `metrics`."""
    return _part(
        "tailers",
        parts.tailers,
        files=[str(path) for path in files],
        listen=listen,
        metrics=metrics,
        scheduler=scheduler,
        delay=delay or DEFAULT_PORTS["delay"],
        store=store or DEFAULT_PORTS["store"],
        config=config,
    )


def run_store(listen: str | None, data: Path, config: Path | None) -> int:
    """The embedded stores in `data`, served to other processes."""
    return _part("store", parts.store, listen=listen, data=str(data), config=config)


def _part(name: str, make: Callable[[dict[str, Any]], Part], *, config: Path | None, **arguments: Any) -> int:
    telemetry.set_up(name)
    with loading():
        given = {"config": None if config is None else str(config), **arguments}
        enter(name, parts.directory_of(given))
        part = make(given)
    say = _sayer(False)

    def started() -> None:
        settle_in()
        say(name, "ready", getattr(part, "address", ""))

    return _run(part, started)


def _run(part: Part, started: Callable[[], None]) -> int:
    async def main() -> None:
        signals = Signals()
        signals.install()
        await run(part, started=started, signals=signals)

    loop.run(main())
    return 0


def _sayer(as_json: bool) -> Callable[[str, str, str], None]:
    """Tells people, or machines, what the parts do; on standard error, as logs are."""

    def say(part: str, event: str, detail: str) -> None:
        if as_json:
            text = json.dumps({"part": part, "event": event, "detail": detail})
        else:
            text = f"{part:>9}  {event}  {detail}".rstrip()
        print(text, file=sys.stderr, flush=True)

    return say
