"""Nodes of Apache Kafka of our own, that can be killed and started again with their data on disk."""

from __future__ import annotations

import base64
import contextlib
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import Self

from ..model.address import parse_address
from .kafka_jars import VERSION, jars
from .own_process import OwnProcess
from .process import free_ports

#: Seconds until a node answers, on a busy machine.
START_WITHIN = 60.0
#: Tries to start a cluster, each with other ports, when another process was faster.
TRIES = 3

#: Settings in which our nodes are not as Kafka is by default: quick, small, and of one mind about topics and times.
OF_OURS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "10485760",
    "log.cleaner.backoff.ms": "500",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
}

LOGGING = """status=error
appender.file.type=Console
appender.file.name=OUT
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=OUT
"""


class KafkaNode(OwnProcess):
    """One broker and controller. `plain` is its address, `proxied` the target of a fault proxy, and `advertised` the
    address at which that proxy must listen: clients that bootstrap there are led there for everything. `spare` is for a
    listener that a cluster's settings add.

    fault_proxy = FaultProxy(node.proxied, node.advertised)
    """

    def __init__(self, number: int, folder: Path, libraries: Path, *, as_it_is: bool = False) -> None:
        super().__init__()
        self.number = number
        self.folder = folder
        self._libraries = libraries
        self._as_it_is = as_it_is
        addresses = [f"127.0.0.1:{port}" for port in free_ports(5)]
        self.plain, self.controller, self.proxied, self.advertised, self.spare = addresses

    def format(self, cluster: str, nodes: list[KafkaNode], settings: dict[str, str]) -> None:
        """Writes the configuration and the empty disk. Once; a restart must not do it again."""
        self.folder.mkdir(parents=True)
        copies = str(min(3, len(nodes)))
        isr = str(min(2, len(nodes)))
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": ",".join(f"{node.number}@{node.controller}" for node in nodes),
            "listeners": f"PLAIN://{self.plain},PROXIED://{self.proxied},CONTROLLER://{self.controller}",
            "advertised.listeners": f"PLAIN://{self.plain},PROXIED://{self.advertised}",
            "listener.security.protocol.map": "PLAIN:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAIN",
            "log.dirs": str(self.folder / "data"),
        }
        if not self._as_it_is:
            properties |= OF_OURS | {"default.replication.factor": copies, "min.insync.replicas": isr}
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            properties[f"{topic}.replication.factor"] = copies
            if not self._as_it_is:
                properties[f"{topic}.num.partitions"] = "4"
        for topic in ("transaction.state.log", "share.coordinator.state.topic"):
            properties[f"{topic}.min.isr"] = isr
        properties |= {name: value.format(node=self) for name, value in settings.items()}
        lines = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.folder / "server.properties").write_text(lines)
        (self.folder / "log4j2.properties").write_text(LOGGING)
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties")
        subprocess.run(command, cwd=self.folder, capture_output=True, check=True, timeout=START_WITHIN)

    def start(self) -> None:
        """Starts the node, or starts it again; `wait` says when it answers."""
        self.begin(self._java("kafka.Kafka", "server.properties"), self.folder, self.folder / "broker.log")

    def wait(self) -> None:
        """Waits until the node answers. Raises OSError with the end of its log when it ended instead."""
        limit = time.monotonic() + START_WITHIN
        while time.monotonic() < limit and self.running:
            with contextlib.suppress(OSError), socket.create_connection(parse_address(self.plain), timeout=1):
                return
            time.sleep(0.05)
        raise OSError(f"Kafka node {self.number} did not start: {(self.folder / 'broker.log').read_text()[-2000:]}")

    def _java(self, *arguments: str) -> list[str]:
        memory = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return ["java", *memory, logging, "-cp", f"{self._libraries}/*", *arguments]


class KafkaCluster:
    """Nodes of our own, one or three; `settings` go into every server.properties, and may name attributes of a node,
    such as {node.proxied}. `as_it_is`: with Kafka's own defaults in all that one node can do. Raises NoKafka without
    jars."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        settings: dict[str, str] | None = None,
        *,
        version: str = VERSION,
        as_it_is: bool = False,
    ) -> None:
        self._folder = folder
        self._count = nodes
        self._settings = settings or {}
        self._version = version
        self._as_it_is = as_it_is
        self.nodes: list[KafkaNode] = []

    @property
    def bootstrap(self) -> str:
        """Addresses of all nodes."""
        return ",".join(node.plain for node in self.nodes)

    def __enter__(self) -> Self:
        libraries = jars(self._version)
        for attempt in range(TRIES):
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            places = [self._folder / f"{attempt}-{number + 1}" for number in range(self._count)]
            self.nodes = [
                KafkaNode(number + 1, place, libraries, as_it_is=self._as_it_is) for number, place in enumerate(places)
            ]
            try:
                for node in self.nodes:
                    node.format(cluster, self.nodes, self._settings)
                for node in self.nodes:
                    node.start()
                for node in self.nodes:
                    node.wait()
                self._serve_groups()
            except (OSError, subprocess.CalledProcessError):
                self.__exit__()
                if attempt == TRIES - 1:
                    raise  # it was not another process that took a port
            else:
                break
        return self

    def _serve_groups(self) -> None:
        """Waits until groups have a coordinator: the first question has Kafka make the topic of offsets, and is to be
        asked again. Raises OSError after a while."""
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError

        limit = time.monotonic() + START_WITHIN
        while True:
            try:
                admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
                try:
                    admin.describe_groups(["nobody"])
                finally:
                    admin.close()
            except KafkaError as error:
                if time.monotonic() > limit:
                    raise OSError(f"Kafka at {self.bootstrap} serves no groups: {error}") from error
                time.sleep(0.05)
            else:
                return

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.stop()
