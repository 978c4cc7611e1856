"""A node and a copy of its data folder, beside a state on a server: each binds its log to that state by the real rule
(stores/bindings.py), as it starts and for as long as it runs. Of both only one holds the binding at a time, none goes
on whose log lacks what the state has seen, and one goes on in the end.

The log is a real file of the simulated disk; the folder's few files and the server's one text are simulated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Set
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...assembly.log_binding import LogBindings
from ...model.errors import ConfigError, NotConnected
from ...stores.data_dir import LOCK_NAME
from ...stores.log import sqlite as log
from ...stores.log.log import Record
from ...stores.node_id import NAME
from .host import Host, here
from .journal import Journal
from .sqlite_disk import InlineFile

#: The log's name, and the hosts' names: the node, and its copy, which does not run before there is one.
LOG, NODE, COPY = "log", "bound1", "bound2"
#: Seconds between two records; and after which a process that was refused is started again.
PACE, AGAIN = 1.0, 7.0


class Clones:
    """A Guest: the server, and the main task of both nodes. `_text` is the binding at the server, and `_seen` the end
    of the log that the state has seen; `_holds` are the processes that hold the binding, by the names of their
    hosts."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._text: dict[str, str] = {}
        self._seen = 0
        self._holds: dict[str, int] = {}
        self.hosts: dict[str, Host] = {}

    # ---- the server, as StateGround

    async def rebind(self, what: str, seen: str, text: str) -> str:
        """Changes a binding if it is `seen`. Returns the text that is there then."""
        host = here()
        await asyncio.sleep(host.latency())
        if host.network.cuts.get((host.name, "server"), 0.0) > host.world.now:
            raise NotConnected("the server does not answer")
        if self._text.get(what, "") == seen:
            self._text[what] = text
        there = self._text[what]
        await asyncio.sleep(host.latency())
        return there

    # ---- a node

    async def main(self) -> None:
        """Runs the process of a node, if its folder is there: it binds its log, then appends to it."""
        host = here()
        if host.disk.is_empty and (host.name == COPY or host.incarnation > 1):
            return
        file = InlineFile(Path(f"/{host.name}/log.db"), log.SCHEMA, name=LOG)
        await file.open()
        mine: Any = _Folder(host)
        bindings = LogBindings(mine, self, {}, {LOG: file}, host.clock)  # type: ignore[arg-type]
        try:
            await bindings.bind([LOG])
            self._begins(host)
            records = log.SqliteLog(file, host.clock)
            await records.open()
            await asyncio.gather(bindings.hold(), self._append(records))
        except ConfigError as error:
            host.world.count("copies refused")
            host.kill(f"is refused: {error}")
            host.world.after(AGAIN, host.start)

    async def _append(self, records: log.SqliteLog) -> None:
        """Appends, and has the state see how far the log goes: every second, for ever."""
        while True:
            self._seen = max(self._seen, 1 + await records.append("orders", 0, [Record(b"")]))
            await asyncio.sleep(PACE)

    def _begins(self, host: Host) -> None:
        self._holds[host.name] = host.incarnation
        host.world.say(host.name, "holds the binding")
        for name, incarnation in self._holds.items():
            other = self.hosts[name]
            if other is not host and other.up and not other.frozen and other.incarnation == incarnation:
                self._journal.wrong(f"bound: {host.name} holds the binding of the log beside {name}")
        end = log_end(host)
        if end < self._seen:
            self._journal.wrong(f"bound: {host.name} goes on with {end} records, and the state has seen {self._seen}")

    # ---- what must become of them, as a Guest

    def pending(self) -> Iterator[str]:
        """A line while no process that runs holds the binding."""
        if not any(self.hosts[name].up and self.hosts[name].incarnation == run for name, run in self._holds.items()):
            yield "no node holds the binding of the log"

    def made(self) -> Set[str]:
        """Nothing: no item comes by these."""
        return set()

    def at_rest(self) -> None:
        """Nothing: all was checked when it happened."""


def log_end(host: Host) -> int:
    """The end of the log on a host's disk."""
    rows = host.disk.rows(LOG, "SELECT max(first + count) FROM batches")
    return int(rows[0][0] or 0) if rows else 0


class _Folder:
    """The data folder of a node, as LogBindings uses it: files by name, and a lock's place."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __truediv__(self, name: str) -> Any:
        files = self._host.disk.texts

        def read_text() -> str:
            return "0123 node" if name == NAME else files[name]

        return SimpleNamespace(
            read_text=read_text,
            exists=lambda: name in files,
            write_text=lambda text: files.update({name: text}),
            unlink=lambda missing_ok: files.pop(name, None),
            stat=lambda: SimpleNamespace(st_dev=0, st_ino=f"{self._host.name}'s {LOCK_NAME}"),
        )

    def __str__(self) -> str:
        return f"/{self._host.name}"
