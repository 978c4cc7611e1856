"""The platform around a Kafka topic: three tailers share it through a group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from ...stores.kafka.options import KafkaOptions
from ...stores.log.kafka import KafkaLog
from ..kafka_nodes import KafkaCluster
from .fed_streams import Fed, FedLog
from .kafka_commits import GroupCommits
from .kafka_plan import GROUP, PARTITIONS, TOPIC, brokers_of
from .known_too_soon import JournaledProgress
from .looks import Connect
from .proxy import FaultProxy
from .server_part import OwnServer
from .streams_plan import TAILERS
from .streams_world import DETACH_AFTER, StreamsWorld

#: Seconds without a heartbeat after which a member of the group is dead, and seconds that a request may take.
SESSION, REQUEST = 3.0, 2.0
#: Items that a tailer may have handed out at once, over all of its partitions.
WINDOW = 60

_TAILER = f"""\
name: faults
source:
  kind: kafka
  bootstrap_servers: {{bootstrap}}
  topic: {TOPIC}
  group: {GROUP}
  session_timeout: {SESSION}s
  request_timeout: {REQUEST}s
  release_within: 2s
  hung_after: 5s
function: {{{{header: function}}}}
window: {{{{items: {WINDOW}, detach_after: {DETACH_AFTER}}}}}
"""
_PLACE = f"faults/{TOPIC}-{{partition}}"


class KafkaWorld(StreamsWorld):
    """A world around Kafka. `brokers`: number of nodes, one or three."""

    partitions = PARTITIONS
    group_time = SESSION
    #: Items that the tailers may have out at any moment: so many may a fault repeat.
    in_flight = WINDOW * len(TAILERS)
    looks_called = ("group_looks", "group_commits_seen")

    def __init__(self, folder: Path, heartbeat: float, brokers: int = 1) -> None:
        super().__init__(folder, heartbeat)
        self._cluster = KafkaCluster(folder / "kafka", brokers)

    @property
    def nodes(self) -> Mapping[str, OwnServer]:
        return dict(zip(brokers_of(len(self._cluster.nodes)), self._cluster.nodes, strict=True))

    async def serve(self) -> dict[str, str]:
        await asyncio.to_thread(self._cluster.__enter__)
        for name, node in zip(self.nodes, self._cluster.nodes, strict=True):
            proxy = self.wires[f"tailers:{name}"] = FaultProxy(node.proxied, node.advertised)
            await proxy.start()
        return {"faults": _TAILER.format(bootstrap=",".join(node.advertised for node in self._cluster.nodes))}

    def fed(self) -> Fed:
        options = KafkaOptions.model_validate({"bootstrap_servers": self._cluster.bootstrap, "request_timeout": 5})
        places = [_PLACE.format(partition=partition) for partition in range(self.partitions)]
        return FedLog(KafkaLog(options, prefix=""), TOPIC, places)

    def asked(self) -> Connect[JournaledProgress]:
        return GroupCommits(self._cluster.bootstrap, GROUP, TOPIC, _PLACE).asked
