"""The program of a child process of `tailrace up`: `python -m tailrace.assembly.child JSON`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..foundation import loop, otel, telemetry
from ..foundation.lifecycle import Part
from ..model.errors import TailraceError, UserError
from ..sdk.discovery import set_default_gateway
from ..wire.grpc_threads import few_threads
from .interpreter import loading, settle_in
from .running import Signals, run, say_ready, watch_lifeline


async def serve(part: Part, told: dict[str, Any]) -> None:
    """Runs one part for a parent, with the settings that `processes.spawn` sends: says when it is ready, and ends when
    its parent does."""
    signals = Signals()
    signals.install()
    watch_lifeline(told["lifeline"], signals)

    def started() -> None:
        settle_in()
        address = getattr(part, "address", "")
        addresses = getattr(part, "addresses", {})
        say_ready(told["ready"], {"pid": os.getpid(), "address": address, "addresses": addresses})

    await run(part, started=started, signals=signals, grace=told["grace"])


def main() -> None:
    """The entry point. Exit status: 0 after a drain, 2 for bad input, 1 for anything else."""
    told = json.loads(sys.argv[1])
    name, guard = told["part"], None
    few_threads()
    try:
        telemetry.set_up(name)
        if name == "worker":  # before modules are loaded that a guard has no use for
            from ..runtime.guard_handle import under_guard

            if gateway := told["settings"].get("gateway"):
                set_default_gateway(gateway)
            guard = under_guard()
        with loading():  # only the modules of this part
            from .parts import from_data
            from .private_process import enter

            settings = from_data(told["settings"])
            enter(name, settings.directory)
            part = settings.build(guard)
        otel.start()
        try:
            loop.run(serve(part, told))
        finally:
            otel.close()
    except TailraceError as error:
        print(f"tailrace {name}: {error}", file=sys.stderr, flush=True)
        sys.exit(2 if isinstance(error, UserError) else 1)


if __name__ == "__main__":
    main()
