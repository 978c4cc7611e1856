"""A platform with one tailer over a Kafka topic, to be stopped and started; its function notes what it was given."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from tailrace.assembly.platform import Platform
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.audit import Audit
from tailrace.model.errors import TailraceError
from tailrace.model.overview import TailerOverview
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = """\
import os
import tailrace

@tailrace.function
async def note(n: int) -> None:
    out = os.open(os.environ["TRUST_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(out, b"%d\\n" % n)
    os.close(out)
"""


class Scene:
    """A topic of its own name, and the platform that reads it."""

    def __init__(self, kafka: str, folder: Path, **source: str) -> None:
        self.kafka = kafka
        self.topic = f"orders-{uuid.uuid4().hex[:8]}"
        self.source = {"bootstrap_servers": kafka, "topic": self.topic, "group": self.topic} | source
        self._folder = folder
        self._journal = folder / "journal"
        self._journal.touch()
        (folder / "noting.py").write_text(FUNCTIONS)
        self._platform: Platform | None = None

    async def start(self, **source: str) -> None:
        """Starts the platform; `source` has further options for the tailer from now on."""
        self.source |= source
        options = ", ".join(f'{name}: "{value}"' for name, value in self.source.items())
        file = self._folder / "orders.yaml"
        file.write_text(f"name: orders\nsource: {{kind: kafka, {options}}}\nfunction: note\n")
        self._platform = Platform(
            self._folder / "data",
            [str(self._folder / "noting.py")],
            tailers=[file],
            heartbeat=0.5,
            environment={"TRUST_JOURNAL": str(self._journal)},
            worker={"executors": 1},
        )
        await self._platform.start()

    async def stop(self) -> None:
        platform, self._platform = self._platform, None
        if platform is not None:
            await platform.stop()

    async def ask(self, question: Callable[[GatewayClient], Awaitable[object]]) -> object:
        assert self._platform is not None
        async with GatewayClient(self._platform.gateway_address) as gateway:
            return await question(gateway)

    async def tailer(self) -> TailerOverview:
        """The tailer as `tailrace tailer list` shows it."""
        overview = await self.ask(lambda gateway: gateway.overview())
        return next(
            (each for each in overview.tailers if each.name == "orders"),  # type: ignore[attr-defined]
            TailerOverview("orders", "kafka", "starting"),
        )

    async def audits(self) -> list[Audit]:
        """The audits as `tailrace audit` shows them; none where it says why there are none."""
        try:
            return await self.ask(lambda gateway: gateway.audit("orders", None, None))  # type: ignore[return-value]
        except TailraceError:
            return []

    def ran(self) -> list[int]:
        """The numbers that the function was given, sorted."""
        return sorted(map(int, self._journal.read_text().split()))

    async def have_run(self, count: int) -> None:
        """Waits until so many runs were noted, and the tailer knows of their ends."""
        await until(lambda: _is(len(self.ran()) >= count))
        await until(self._is_quiet)

    async def _is_quiet(self) -> bool:
        tailer = await self.tailer()
        return tailer.lag == 0 and not tailer.in_flight

    def has_passed(self, records: int) -> Callable[[], Awaitable[bool]]:
        """A question: whether the tailer has passed so many records in all partitions, read or not."""

        async def quiet() -> bool:
            return sum([audit.end for audit in await self.audits()]) == records and await self._is_quiet()

        return quiet

    async def ends(self, before: int) -> TailerOverview:
        """Waits until the tailer has stopped, or has run more than so many and passed all there is; returns it."""

        async def over() -> bool:
            tailer = await self.tailer()
            return tailer.state == "failed" or (tailer.lag == 0 and len(self.ran()) > before)

        await until(over)
        return await self.tailer()

    # The topic.

    async def make(self, partitions: int = 1, **settings: str) -> None:
        """Makes the topic, once a former one of its name is gone."""

        def make() -> None:
            admin = KafkaAdminClient(bootstrap_servers=self.kafka)
            try:
                configs = {name.replace("_", "."): value for name, value in settings.items()}
                admin.create_topics([NewTopic(self.topic, partitions, 1, topic_configs=configs)])
                admin.wait_for_topics([self.topic])
            finally:
                admin.close()

        await asyncio.to_thread(make)

    async def add(self, partitions: int) -> None:
        """Adds partitions to the topic, until it has so many."""

        def add() -> None:
            admin = KafkaAdminClient(bootstrap_servers=self.kafka)
            try:
                admin.create_partitions({self.topic: partitions})
            finally:
                admin.close()

        await asyncio.to_thread(add)

    async def delete(self) -> None:
        def delete() -> None:
            admin = KafkaAdminClient(bootstrap_servers=self.kafka)
            try:
                admin.delete_topics([self.topic])
            finally:
                admin.close()

        await asyncio.to_thread(delete)
        await asyncio.sleep(0.5)  # brokers forget it one after the other

    async def put(self, first: int, count: int, partition: int = 0, kafka: str = "", ago: float = 0.0) -> None:
        """Produces records with these numbers; `ago`: seconds before now that are their time."""
        time = int((SYSTEM_CLOCK.wall() - ago) * 1000)

        def produce() -> None:
            producer = KafkaProducer(bootstrap_servers=kafka or self.kafka)
            for number in range(first, first + count):
                producer.send(self.topic, b'{"n": %d}' % number, partition=partition, timestamp_ms=time)
            producer.flush(30)
            producer.close()

        await asyncio.to_thread(produce)


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 90.0) -> None:
    """Waits until something is true."""
    async with asyncio.timeout(seconds):
        while not await true():
            await asyncio.sleep(0.1)


async def _is(value: bool) -> bool:
    return value
