"""Foreground runs of the command line: one part, or the whole platform. Each returns an exit status."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..foundation import loop, otel, telemetry
from ..foundation.lifecycle import Part
from ..foundation.looked_for import LookedFor
from ..sdk.discovery import set_default_gateway
from .files import addresses, read_all, tailer_names
from .interpreter import loading, settle_in
from .parts import PartSettings, WorkerSettings
from .platform import Platform
from .private_process import enter
from .running import Signals, run
from .settings import TAILERS, ConfigDirectory, unread


def run_up(functions: Sequence[str], config: Path | None, data: Path, as_json: bool, watch: bool) -> int:
    """Runs the whole platform here, until a signal. `data` rests when it ends; the next `up` goes on from there. With
    `watch` files of `config` that change are read again by themselves."""
    say = _sayer(as_json)
    if config is None and (folder := unread(Path())) is not None:
        say("tailrace", "defaults", f"the files in {folder}/ are not read: to use them, add --config {folder}")
    directory = ConfigDirectory(config)
    ports = addresses(read_all(directory))  # bad files end it here, before anything is started
    names = tailer_names(directory)
    os.environ.setdefault(telemetry.FORMAT_VARIABLE, "json" if as_json else "text")  # the children's logs, like its own
    platform = Platform(data, functions, config, ports=ports, watch=watch, on_event=say)

    def started() -> None:
        if config is not None:
            say("tailrace", "tailers", ", ".join(names) or f"no file in {config / TAILERS}/: the queue alone is read")
        say("tailrace", "ready", f"gateway {platform.gateway_address}, scheduler {platform.scheduler_address}")

    return _run(platform, started, math.inf)  # the platform gives each part its own time


def run_part(settings: PartSettings) -> int:
    """Runs one part, until a signal. A process that runs a worker becomes its guard, and a child of it the worker."""
    telemetry.set_up(settings.name)
    guard = None
    if isinstance(settings, WorkerSettings):
        from ..runtime.guard_handle import under_guard

        if settings.gateway and not isinstance(settings.gateway, LookedFor):
            set_default_gateway(settings.gateway)
        guard = under_guard()
    with loading():
        enter(settings.name, settings.directory)
        part, grace = settings.build(guard), settings.drain_time
    say = _sayer(False)

    def started() -> None:
        settle_in()
        say(settings.name, "ready", getattr(part, "address", ""))

    return _run(part, started, grace)


def _run(part: Part, started: Callable[[], None], grace: float) -> int:
    async def main() -> None:
        signals = Signals()
        signals.install()
        await run(part, started=started, signals=signals, grace=grace)

    otel.start()
    try:
        loop.run(main())
    finally:
        otel.close()
    return 0


def _sayer(as_json: bool) -> Callable[[str, str, str], None]:
    """A function that tells people, or machines, of events in the parts; on standard error, as logs are, for as long as
    that is read."""

    def say(part: str, event: str, detail: str) -> None:
        if as_json:
            text = json.dumps({"part": part, "event": event, "detail": detail})
        else:
            text = f"{part:>9}  {event}  {detail}".rstrip()
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)

    return say
