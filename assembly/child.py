"""The program of a child process of `tailrace up`: `python -m tailrace.assembly.child JSON`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..sdk import loop, telemetry
from ..sdk.discovery import GATEWAY_VARIABLE
from ..sdk.lifecycle import Part
from ..sdk.model.errors import TailraceError, UserError
from ..sdk.wire.threads import few_threads
from .interpreter import loading, settle_in
from .running import Signals, run, say_ready, watch_lifeline


async def serve(part: Part, facts: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Runs one part for a parent: tells it when ready, and ends with it."""
    signals = Signals()
    signals.install()
    watch_lifeline(arguments["lifeline"], signals)

    def started() -> None:
        settle_in()
        address = getattr(part, "address", "")
        addresses = getattr(part, "addresses", {})
        say_ready(arguments["ready"], {"pid": os.getpid(), "address": address, "addresses": addresses, **facts})

    await run(part, started=started, signals=signals, grace=arguments.get("grace", 30.0))


def main() -> None:
    """The entry point. Exit status: 0 after a drain, 2 for bad input, 1 for anything else."""
    arguments = json.loads(sys.argv[1])
    few_threads()
    try:
        telemetry.set_up(arguments["part"])
        if arguments["part"] == "worker":
            from ..runtime.guarding import under_guard

            if gateway := arguments.get("gateway"):  # clients in functions are of this platform
                os.environ.setdefault(GATEWAY_VARIABLE, gateway)
            arguments["guard"] = under_guard()
        with loading():  # of the part's own world only
            from .entering import enter
            from .parts import build, directory_of

            enter(arguments["part"], directory_of(arguments))
            part = build(arguments)
        loop.run(serve(part, {}, arguments))
    except TailraceError as error:
        print(f"tailrace {arguments['part']}: {error}", file=sys.stderr, flush=True)
        sys.exit(2 if isinstance(error, UserError) else 1)


if __name__ == "__main__":
    main()
