"""The stores of another process, as its clients see them."""

from __future__ import annotations

from ..stores.config import StoresConfig
from ..stores.log.engines import chosen_log
from ..stores.remote import (
    RemoteCheckpoints,
    RemoteControl,
    RemoteDeadLetters,
    RemoteDrops,
    RemoteHeights,
    RemoteInventory,
    RemoteJobs,
    RemoteLedger,
    RemoteLog,
    RemoteOwnership,
    RemoteQueue,
    RemoteReplays,
    RemoteResults,
    RemoteSchedules,
    RemoteSegments,
    RemoteTroubles,
    RemoteUsage,
)
from ..stores.trusted_time import TrustedTime


class RemoteStores:
    """Clients of every store served at an address; the delay service's streams may be on a server of their own
    (`delay_log` in stores.yaml), and it may have a queue (`delay_queue`). `fleet`: the fleet of this process, empty
    where it has none. A Part."""

    def __init__(self, address: str, config: StoresConfig | None = None, fleet: str = "") -> None:
        self.queue = RemoteQueue(address)
        self.jobs = RemoteJobs(address)
        self.log = RemoteLog(address)
        self._apart = None if config is None else chosen_log(config.delay_log, fleet=fleet)
        self.delay_log = self._apart or RemoteLog(address, "delay_log")
        has_queue = config is not None and config.delay_queue != "none"
        self.delay_queue = RemoteQueue(address, "delay_queue") if has_queue else None
        self.checkpoints = RemoteCheckpoints(address)
        self.dead_letters = RemoteDeadLetters(address)
        self.drops = RemoteDrops(address)
        self.results = RemoteResults(address)
        self.control = RemoteControl(address)
        self.heights = RemoteHeights(address)
        self.inventory = RemoteInventory(address)
        self.segments = RemoteSegments(address)
        self.ownership = RemoteOwnership(address)
        self.replays = RemoteReplays(address)
        self.schedules = RemoteSchedules(address)
        self.ledger = RemoteLedger(address)
        self.troubles = RemoteTroubles(address)
        self.usage = RemoteUsage(address)

    @property
    def trusted(self) -> TrustedTime:
        """The time by which old things go that this process deletes: nothing is known of its clock at first."""
        made = TrustedTime()
        made.begin()
        return made

    async def start(self) -> None:
        """Opens the log of the delay service where it is on a server of its own. Each client dials at its first
        call."""
        if self._apart is not None:
            await self._apart.open()

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Closes the clients."""
        for client in vars(self).values():
            if client is not None:
                await client.close()
