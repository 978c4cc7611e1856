"""The scenario `kafka`: a topic of four partitions read by either client."""

from __future__ import annotations

import importlib.util
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from ..assembly.platform import Platform
from ..sdk.wire.gateway import GatewayClient
from ..stores.log.kafka import KafkaLog
from ..stores.log.kafka_options import KafkaOptions
from ..stores.log.log import Record
from .percentiles import percentile
from .scenarios import FUNCTIONS, Figures, Progress, paced, throughput
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
    """Where a broker is, and by which client it is read."""

    bootstrap: str
    client: str

    async def kafka(self, folder: Path, count: int, progress: Progress) -> Figures:
        """Records of 200 bytes → a no-op, settled; then 200 appends a second, append → start."""
        topic = f"tailrace-bench-{uuid.uuid4().hex[:10]}"
        log = self.log()
        try:
            await log.create(topic, PARTITIONS)
            for first in range(0, count, 1024):
                batch = [Record(PAYLOAD)] * min(1024, count - first)
                await log.append(topic, first // 1024 % PARTITIONS, batch)
                progress("filling the topic", first / count)
            figures = await self.throughput(folder, topic, count, progress)
            return figures | await self._latency(folder, f"{topic}-starts", log, progress)
        finally:
            await log.close()

    def log(self) -> KafkaLog:
        """What appends the records. It is not what is measured, so it is librdkafka where that is installed."""
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
        """What rests in a topic → a no-op, settled; the group bears the topic's name. The platform runs until `over`
        returns."""
        platform = Platform(folder / "data", [FUNCTIONS], tailers=[self._tailer(folder, topic, "noop_000")])

        async def settled(gateway: GatewayClient) -> int:
            overview = await gateway.overview()
            return sum(tailer.settled for tailer in overview.tailers if tailer.name == "bench")

        return await throughput(platform, settled, count, progress, over)

    async def _latency(self, folder: Path, topic: str, log: KafkaLog, progress: Progress) -> Figures:
        starts_file = folder / "starts"
        await log.create(topic, PARTITIONS)
        platform = Platform(
            folder / "latency",
            [FUNCTIONS],
            tailers=[self._tailer(folder, topic, "bench_start")],
            environment={"TAILRACE_BENCH_STARTS": str(starts_file)},
        )
        await platform.start()
        turn = iter(range(1 << 30))

        async def append() -> None:
            record = Record(f'{{"sent": {time.monotonic()!r}}}'.encode())
            await log.append(topic, next(turn) % PARTITIONS, [record])

        try:
            found = await paced(append, SECONDS, starts_file, progress, "topic")
        finally:
            await platform.stop()
        return {"p50_ms": 1e3 * percentile(found, 0.5), "p99_ms": 1e3 * percentile(found, 0.99)}
