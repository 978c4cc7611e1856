"""The platform on three hosts that speak TLS to each other: network namespaces with addresses of their own.

The first host has the stores with their server, if any, gateway, delay service, scheduler and one process of tailers;
the second one a worker and another process of tailers, the third one a worker. The runner of the faults is on the first
host.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...foundation.certificates import VARIABLE
from ...foundation.clock import SYSTEM_CLOCK
from ...foundation.issuing import Authority
from .host_networks import HostNetworks
from .hosts_plan import ELSEWHERE, HOSTS, TAILERS
from .plan import NODE
from .server_world import ServerWorld
from .world import FaultWorld

#: The roles of the parts, and of the runner that starts them and puts items in.
_ROLES = {"store": "node", "delay": "node", "gateway": "gateway", "scheduler": "scheduler", "runner": "node"}


class HostsWorld(FaultWorld):
    """A world of three hosts. Its stores are files of the first one."""

    tailer_parts = TAILERS
    direct = ()

    async def start(self) -> None:
        networks = self.networks = HostNetworks(len(HOSTS))
        await networks.start()
        networks.enter(1)
        self.address = networks.hosts[0].address
        authority = Authority.made(self._fleet, "", SYSTEM_CLOCK.wall())
        for role in ("node", "gateway", "scheduler", "tailer", "worker"):
            authority.issue(role, role, (self.address,), SYSTEM_CLOCK.wall(), at=role)
        os.environ[VARIABLE] = self.environment("runner")[VARIABLE]
        await super().start()

    async def stop(self) -> None:
        try:
            await super().stop()
        finally:
            os.environ.pop(VARIABLE, None)
            if self.networks is not None:
                await self.networks.stop()

    @property
    def _fleet(self) -> Path:
        return self.folder / "fleet"

    def environment(self, part: str) -> Mapping[str, str]:
        return {VARIABLE: str(self._fleet / _ROLES.get(part, part.partition("-")[0].removesuffix("s")))}

    def within(self, part: str) -> Sequence[str]:
        assert self.networks is not None
        return self.networks.hosts[ELSEWHERE[part] - 1].within if part in ELSEWHERE else ()

    def members(self, target: str) -> list[str]:
        """The parts of a target; the node is the first host's."""
        return [*NODE[:-1], TAILERS[0]] if target == "node" else super().members(target)


class HostsOnServer(HostsWorld, ServerWorld):
    """A world of three hosts with the queue on a server of the first one."""
