"""The file in which a gateway spools: in the node's data directory, or in one of the gateway's own."""

from __future__ import annotations

from pathlib import Path

from ..gateway.config import GatewayConfig
from ..gateway.spooling import spool_rule
from ..sdk.clock import SYSTEM_CLOCK
from ..stores.data_dir import DataDir
from ..stores.spool import sqlite as spool
from ..stores.sqlite import SqliteFile

NAME = "spool.db"


class SpoolFile:
    """A Part. `own` takes the directory too; else somebody in this process has it. Always durable: what is in it was
    answered, and is nowhere else."""

    def __init__(self, data: Path, config: GatewayConfig, *, own: bool) -> None:
        self._data_dir = DataDir(data) if own else None
        self._file = SqliteFile(data / NAME, spool.SCHEMA, name="spool")
        self.spool = spool.SqliteSpool(
            self._file,
            SYSTEM_CLOCK,
            room=spool_rule(config).check_room,
            retention=config.spool_retention,
            most_kept=max(1, config.spool_items),
        )

    async def start(self) -> None:
        """Opens it. Raises what DataDir and SqliteFile raise."""
        if self._data_dir is not None:
            self._data_dir.open()
        await self._file.open()
        await self.spool.open()

    async def drain(self, timeout: float) -> None:
        """What is spooled stays for the next run."""

    async def stop(self) -> None:
        """Closes it. Harmless twice."""
        await self._file.close()
        if self._data_dir is not None:
            self._data_dir.close()


def wanted(data: Path, config: GatewayConfig, *, apart: bool) -> bool:
    """Whether there is to be a spool: the queue's store is apart and may be away alone, or an earlier run left one."""
    return (apart and config.spool_items > 0) or (data / NAME).exists()
