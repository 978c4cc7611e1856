"""The platform around a topic: three tailers share it through a group, and reach its brokers through wires that can be
broken. The brokers are real ones, killed and started again with what they had on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...sdk.async_client import AsyncClient
from ...stores.log.kafka import KafkaLog
from ...stores.log.kafka_options import KafkaOptions
from ..kafka_nodes import KafkaCluster
from .feed import Feed
from .journal import Line
from .kafka_commits import Commits, passed
from .kafka_plan import GROUP, PARTITIONS, TAILERS, TOPIC
from .proxy import FaultProxy
from .server_part import ServerPart
from .verdict import Expected, Finding
from .world import World, until

#: Seconds: without a heartbeat for so long a member of the group is dead, and how long a request may take.
SESSION, REQUEST = 3.0, 2.0
#: Items that a tailer may have handed out at once, over all of its partitions.
WINDOW = 60
#: Seconds that the brokers' offsets may take to be what they must, in the end.
KNOWN_WITHIN = 30.0

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
window: {{{{items: {WINDOW}}}}}
"""


class KafkaWorld(World):
    """`brokers`: how many nodes, one or three."""

    tailer_parts = TAILERS
    partitions = PARTITIONS
    group_time = SESSION
    build_up = 1.5
    #: What the tailers may have had out at any moment: so much a fault may repeat.
    in_flight = WINDOW * len(TAILERS)

    def __init__(self, folder: Path, heartbeat: float, brokers: int = 1) -> None:
        super().__init__(folder, heartbeat)
        self._cluster = KafkaCluster(folder / "kafka", brokers)
        self._commits: Commits | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self._cluster.__enter__)
        for node in self._cluster.nodes:
            proxy = self.wires[f"tailers:kafka-{node.number}"] = FaultProxy(node.proxied, node.advertised)
            await proxy.start()
        self._commits = Commits(self._cluster.bootstrap, GROUP)
        await self._commits.start()
        feed = self.feed()
        try:
            await feed.start()
        finally:
            await feed.close()
        bootstrap = ",".join(node.advertised for node in self._cluster.nodes)
        self._tailers = {"faults": _TAILER.format(bootstrap=bootstrap)}
        await super().start()
        for node in self._cluster.nodes:
            broker = self.parts[f"kafka-{node.number}"] = ServerPart(f"kafka-{node.number}", node)
            await broker.start()

    async def stop(self) -> None:
        if self._commits is not None:
            await self._commits.stop()
        try:
            await super().stop()
        finally:
            # As parts first: these start again what was only killed, and left brokers behind.
            brokers = [part for part in self.parts.values() if isinstance(part, ServerPart)]
            await asyncio.gather(*(part.end(0.0) for part in brokers))
            await asyncio.gather(*(asyncio.to_thread(node.kill) for node in self._cluster.nodes))

    def feed(self) -> Feed:
        options = KafkaOptions.model_validate({"bootstrap_servers": self._cluster.bootstrap, "request_timeout": 5})
        log = KafkaLog(options, prefix="")
        return Feed(self._client(), log, TOPIC, self.partitions, f"faults/{TOPIC}-{{partition}}/{{position}}")

    def _client(self) -> AsyncClient:
        return AsyncClient(self.wires["client:gateway"].address if "client:gateway" in self.wires else "127.0.0.1:1")

    async def settled(self, feed: Feed) -> list[Finding]:
        """The group comes to know that everything is done."""
        commits, ends = self._commits, await feed.ends()
        assert commits is not None
        if await until(lambda: all(commits.known.get(each, 0) == end for each, end in ends.items()), KNOWN_WITHIN):
            return []
        behind = {each: (commits.known.get(each), end) for each, end in ends.items() if commits.known.get(each) != end}
        return [Finding("behind", "", 0.0, f"partition {each}: the group knows {at}") for each, at in behind.items()]

    def judged(self, lines: Sequence[Line], expected: Mapping[str, Expected]) -> tuple[list[Finding], dict[str, Any]]:
        assert self._commits is not None
        seen = self._commits.seen
        found = passed(lines, seen, TOPIC, "faults")
        return found, {"group_looks": self._commits.answers, "group_commits_seen": len(seen)}
