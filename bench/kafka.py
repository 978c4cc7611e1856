"""The scenario `kafka`: a topic of four partitions read by either client."""

from __future__ import annotations

import asyncio
import importlib.util
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from ..assembly.platform import Platform
from ..stores.kafka.options import KafkaOptions
from ..stores.log.kafka import KafkaLog
from ..stores.log.log import Record
from ..wire.gateway import GatewayClient
from .figures import Figures, Progress
from .percentiles import percentile
from .scenarios import FUNCTIONS, WARM_UP, each_item, paced, throughput, work_of
from .workload import PAYLOAD, write_tailer

PARTITIONS = 4
#: Seconds of the measurement of latency.
SECONDS = 10.0

TAILER = """\
name: bench
source: {{kind: kafka, bootstrap_servers: "{bootstrap}", client: {client}, topic: {topic}, group: {topic}}}
function: {function}
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker: its address, and the client library by which it is read."""

    bootstrap: str
    client: str

    async def kafka(self, folder: Path, count: int, progress: Progress) -> Figures:
        """Runs records of 200 bytes → a no-op, settled; then 200 appends a second, append → start."""
        topic = f"tailrace-bench-{uuid.uuid4().hex[:10]}"
        log = self.log()
        try:
            await log.create(topic, PARTITIONS)
            for first in range(0, count, 1024):
                batch = [Record(PAYLOAD)] * min(1024, count - first)
                await log.append(topic, first // 1024 % PARTITIONS, batch)
                progress("filling the topic", first / count)
            figures = await self.throughput(folder, topic, count, progress)
            await log.create(f"{topic}-starts", PARTITIONS)
            return figures | await self._latency(folder, f"{topic}-starts", progress)
        finally:
            await log.close()

    def log(self) -> KafkaLog:
        """The log that appends the records. It is not measured, so it uses librdkafka where that is installed."""
        client = "confluent" if importlib.util.find_spec("confluent_kafka") is not None else "kafka-python"
        options = KafkaOptions.model_validate({"bootstrap_servers": self.bootstrap, "client": client})
        return KafkaLog(options, prefix="")

    def _tailer(self, folder: Path, topic: str, function: str) -> Path:
        text = TAILER.format(bootstrap=self.bootstrap, client=self.client, topic=topic, function=function)
        return write_tailer(folder, text)

    async def throughput(
        self,
        folder: Path,
        topic: str,
        count: int,
        progress: Progress,
        over: Callable[[], Coroutine[object, object, None]] | None = None,
    ) -> Figures:
        """Measures the records in a topic → a no-op, settled; the group bears the topic's name. The platform runs until
        `over` returns."""
        platform = Platform(folder / "data", [FUNCTIONS], tailers=[self._tailer(folder, topic, "noop_000")])

        async def settled(gateway: GatewayClient) -> int:
            overview = await gateway.overview()
            return sum(tailer.settled for tailer in overview.tailers if tailer.name == "bench")

        return await throughput(platform, settled, count, progress, over)

    async def _latency(self, folder: Path, topic: str, progress: Progress) -> Figures:
        """Measures 200 appends a second, append → start. Each partition has a writer of its own: a record does not wait
        until the one before it was acknowledged, as at any producer that sends without waiting."""
        starts_file = folder / "starts"
        platform = Platform(
            folder / "latency",
            [FUNCTIONS],
            tailers=[self._tailer(folder, topic, "bench_start")],
            environment={"TAILRACE_BENCH_STARTS": str(starts_file)},
        )
        logs = [self.log() for _ in range(PARTITIONS)]
        await platform.start()
        turn = iter(range(1 << 30))

        async def append(due: float) -> None:
            record = Record(f'{{"sent": {due!r}}}'.encode())
            partition = next(turn) % PARTITIONS
            await logs[partition].append(topic, partition, [record])

        try:
            before = work_of(platform)
            found = await paced(append, SECONDS, starts_file, progress, "topic")
            work = each_item("start_", before, work_of(platform), WARM_UP + len(found))
        finally:
            await platform.stop()
            await asyncio.gather(*(log.close() for log in logs))
        return {"p50_ms": 1e3 * percentile(found, 0.5), "p99_ms": 1e3 * percentile(found, 0.99), **work}
