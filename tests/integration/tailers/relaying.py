"""A program that carries an outbox to a queue and is killed around each step of a batch: `relaying.py OUTBOX NODE`.

For each point a child process of its own carries one batch and kills itself without warning at that point of the next.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.lease import LeaseSizes
from tailrace.stores.control import sqlite as control
from tailrace.stores.queue.sqlite import queue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.counts import TailerCounts
from tailrace.tailers.pumps.relay_pump import RelayPump
from tailrace.tailers.registry import Environment, kind_of
from tailrace.tailers.resources import Setup

#: Points of a batch: the call, and whether the end comes before or after it.
POINTS = [(call, after) for call in ("take", "submit", "set_aside", "remove") for after in (False, True)]


class Dying:
    """Passes calls on; at one of them, and the `turn`th time, `die` is called."""

    def __init__(self, inner: Any, call: str, after: bool, die: Any, turn: int = 1) -> None:
        self._inner, self._call, self._after, self._die, self._left = inner, call, after, die, turn

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name != self._call:
            return method

        async def call(*arguments: Any) -> Any:
            self._left -= 1
            if not self._left and not self._after:
                self._die()
            answer = await method(*arguments)
            if not self._left:
                self._die()
            return answer

        return call


class Node:
    """A node, as a relay needs it: a queue and the registry of functions, in one file that nobody syncs."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, queue.SCHEMA + control.SCHEMA, name="node", synchronous="OFF")
        self.queue = queue.SqliteQueue(self._file)
        self.control = control.SqliteControl(self._file, SYSTEM_CLOCK)

    async def __aenter__(self) -> Node:
        await self._file.open()
        await self.queue.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._file.close()


def pump(node: Node, outbox: Any, keys: dict[str, Any], queue: Any = None) -> RelayPump:
    """A pump of an outbox over a node; `keys` are those under `source`."""
    config = TailerConfig.model_validate({"name": "outbox", "source": {"kind": "outbox", **keys}})
    nothing: Any = None
    environment = Environment(queue or node.queue, *[nothing] * 9, control=node.control)
    kind = kind_of("outbox")
    setup = Setup(environment, "", nothing, LeaseSizes(), config=config, kind=kind)
    return RelayPump(setup, TailerCounts(), outbox or kind.build(config.options_for(kind), environment))


async def _relay(outbox: str, path: Path, call: str, after: bool) -> None:
    def die() -> None:
        sys.stdout.write(f"{call} {after}\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    async with Node(path) as node:
        keys = {"database": outbox, "batch": 5}
        source = Dying(pump(node, None, keys).source, call, after, die, 1 if call == "set_aside" else 2)
        relay = pump(node, source, keys, Dying(node.queue, call, after, die, 2))
        for _ in range(20):
            await relay.turn()


def main(outbox: str, node: str) -> None:
    for call, after in POINTS:
        child = os.fork()
        if child == 0:
            asyncio.run(_relay(outbox, Path(node), call, after))
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
