"""The file in which a gateway spools (keeps submissions while the queue's store is away): in the node's data directory,
or in one of the gateway's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.lifecycle import Part, each_of
from ..gateway.config import GatewayConfig
from ..gateway.server import GatewayServer
from ..gateway.spooling import spool_rule
from ..stores.data_dir import DataDir
from ..stores.restored import Stamp
from ..stores.spool import sqlite as spool
from ..stores.spool.spool import FILE as NAME
from ..stores.sqlite.file import SqliteFile
from ..stores.trusted_time import HOST, TrustedTime, TrustedTimes


class SpoolFile:
    """The file, open between `start` and `stop`. `own` takes the directory too; else another part of this process has
    it, and its `trusted` time. Always durable: its submissions were answered, and are nowhere else."""

    def __init__(
        self,
        data: Path,
        config: GatewayConfig,
        *,
        own: bool,
        clock: Clock = SYSTEM_CLOCK,
        file: type[SqliteFile] = SqliteFile,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._data_dir = DataDir(data) if own else None
        trusted = trusted or TrustedTime(clock)
        self._stamp = Stamp(data, [], [NAME])
        self._times = TrustedTimes(data, {HOST: trusted}, clock) if own else None
        self._file = file(data / NAME, spool.SCHEMA, name="spool")
        self.spool = spool.SqliteSpool(
            self._file,
            clock,
            room=spool_rule(config).check_room,
            retention=config.spool_retention,
            most_kept=max(1, config.spool_items),
            trusted=trusted,
        )

    async def start(self) -> None:
        """Opens the file. Raises the errors of DataDir and SqliteFile, and ConfigError where a spool is gone that the
        last run left in a directory of its own."""
        if self._data_dir is not None:
            self._data_dir.open()
            self._stamp.refuse_gone()
        if self._times is not None:
            self._times.begin(fresh=not self._file.path.exists())
        await self._file.open()
        await self.spool.open()
        if self._data_dir is not None:
            self._stamp.opened()

    async def stop(self) -> None:
        """Closes the file. Harmless twice."""
        await each_of([self._file.close, self._note, self._leave])

    async def _note(self) -> None:
        if self._times is not None and self._file.path.exists():
            with contextlib.suppress(OSError):  # then nothing is old for the next run before its clock is believed
                self._times.note(now=True)

    async def _leave(self) -> None:
        if self._data_dir is not None:
            self._data_dir.close()

    def on_death(self, tell: Callable[[BaseException], None]) -> None:
        """Sets a call for the case that the file's writer ends by itself: nothing is spooled then, or brought to the
        store, until the file was closed and opened again."""
        self._file.on_death(tell)


class SpoolingGateway:
    """A gateway and the file in which it spools, as one Part: a failure in either closes both, and opens them again.
    The file is opened first and closed last."""

    def __init__(self, gateway: GatewayServer, file: SpoolFile) -> None:
        self.duties = gateway.duties
        self._gateway = gateway
        self._file = file
        file.on_death(partial(self.duties.failed, f"the writer of {NAME}"))

    async def start(self) -> None:
        """Opens the file, then starts the gateway."""
        await self._file.start()
        await self._gateway.start()

    async def drain(self, timeout: float) -> None:
        """Drains the gateway; spooled submissions stay for the next run."""
        await self._gateway.drain(timeout)

    async def stop(self) -> None:
        """Stops the gateway, then closes the file, whatever fails on the way."""
        await each_of([self._gateway.stop, self._file.stop])


def gateway_part(gateway: GatewayServer, file: SpoolFile | None) -> Part:
    """A gateway as it runs: with its spool, if it has one."""
    return gateway if file is None else SpoolingGateway(gateway, file)


def wanted(data: Path, config: GatewayConfig, *, apart: bool) -> bool:
    """Whether there is to be a spool: the queue's store is apart and may be away alone, or an earlier run left one."""
    return (apart and config.spool_items > 0) or (data / NAME).exists()
