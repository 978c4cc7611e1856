"""Apache Kafka for tests: nodes of our own that can be killed and started again with what they had on disk, and one
broker that all tests of a session share.

    python tests/servers/kafka.py          a broker in the foreground, until it is interrupted
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import docker_answers, free_ports, none_to_be_had
from servers.kafka_jars import HOW, VERSION, NoKafka, jars

#: Seconds until a node answers, on a busy machine.
START_WITHIN = 60.0
STOP_WITHIN = 20.0
#: How often a cluster is started with other ports when some other process was faster.
TRIES = 3
IMAGE = f"apache/kafka:{VERSION}"
ADDRESS = "TAILRACE_TEST_KAFKA"

LOGGING = """status=error
appender.file.type=Console
appender.file.name=OUT
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=OUT
"""


class KafkaNode:
    """One broker and controller. `plain` is its address, `proxied` where a fault proxy's target is, and `advertised`
    where that proxy must listen: clients that bootstrap there are led there for everything.

    fault_proxy = FaultProxy(node.proxied, node.advertised)
    """

    def __init__(self, number: int, folder: Path, libraries: Path) -> None:
        self.number = number
        self.folder = folder
        self._libraries = libraries
        ports = free_ports(4)
        self.plain, self.controller, self.proxied, self.advertised = (f"127.0.0.1:{port}" for port in ports)
        self._process: subprocess.Popen[bytes] | None = None

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
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": isr,
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.cleaner.dedupe.buffer.size": "10485760",
            "log.message.timestamp.after.max.ms": "9223372036854775807",
        }
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            properties[f"{topic}.replication.factor"] = copies
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
        """Starts it, or starts it again; `wait` says when it answers."""
        with (self.folder / "broker.log").open("ab") as out:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", "server.properties"), cwd=self.folder, stdout=out, stderr=out
            )

    def wait(self) -> None:
        """Returns when it answers. Raises OSError with the end of its log when it ended instead."""
        limit = time.monotonic() + START_WITHIN
        while time.monotonic() < limit and self.running:
            with contextlib.suppress(OSError), socket.create_connection(_pair(self.plain), timeout=1):
                return
            time.sleep(0.05)
        raise OSError(f"Kafka node {self.number} did not start: {(self.folder / 'broker.log').read_text()[-2000:]}")

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL. What it had written is kept; page cache and all, so this says nothing of power cuts."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_WITHIN)

    def stop(self) -> None:
        """An orderly end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()

    def _java(self, *arguments: str) -> list[str]:
        memory = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return ["java", *memory, logging, "-cp", f"{self._libraries}/*", *arguments]


class KafkaCluster:
    """Nodes of our own, one or three; `settings` go into every server.properties, and may name what a node has, such
    as {node.proxied}. Raises NoKafka without jars."""

    def __init__(self, folder: Path, nodes: int = 1, settings: dict[str, str] | None = None) -> None:
        self._folder = folder
        self._count = nodes
        self._settings = settings or {}
        self.nodes: list[KafkaNode] = []

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes."""
        return ",".join(node.plain for node in self.nodes)

    def __enter__(self) -> Self:
        libraries = jars()
        for attempt in range(TRIES):
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            places = [self._folder / f"{attempt}-{number + 1}" for number in range(self._count)]
            self.nodes = [KafkaNode(number + 1, place, libraries) for number, place in enumerate(places)]
            try:
                for node in self.nodes:
                    node.format(cluster, self.nodes, self._settings)
                for node in self.nodes:
                    node.start()
                for node in self.nodes:
                    node.wait()
            except (OSError, subprocess.CalledProcessError):
                self.__exit__()
                if attempt == TRIES - 1:
                    raise  # it was not another process that took a port
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.stop()


# One broker for all tests of a session.


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a real broker that all tests share, those of other pytest-xdist workers too: whoever uses it
    takes topics and groups of its own names."""
    if address := os.environ.get(ADDRESS):
        print(f"\nKafka: {address}, from {ADDRESS}")
        yield address
    elif docker_answers():
        with _container() as address:
            print(f"\nKafka: {address}, a container of {IMAGE}")
            yield address
    else:
        try:
            address = _shared()
        except NoKafka as error:
            none_to_be_had("a real Kafka", f"{error}: {HOW}")
        print(f"\nKafka: {address}, a broker {VERSION} of our own")
        yield address


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A broker for one test alone, to be killed, restarted and cut off."""
    try:
        jars()
    except NoKafka as error:
        none_to_be_had("a Kafka broker that is killed", f"{error}: {HOW}")
    with KafkaCluster(tmp_path / "kafka") as cluster:
        yield cluster


#: A second listener that asks who is there, and an authorizer: `reader` may read nothing, `owner` everything. Whoever
#: comes to the plain listener is nobody, and may do all.
GUARDED = {
    "listener.security.protocol.map": "PLAIN:PLAINTEXT,PROXIED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "advertised.listeners": "PLAIN://{node.plain},PROXIED://{node.proxied}",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.proxied.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_owner="secret-of-owner" user_reader="secret-of-reader";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:owner",
}


@pytest.fixture(scope="module")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker for one file of tests, with users and ACLs; see GUARDED."""
    try:
        jars()
    except NoKafka as error:
        none_to_be_had("a Kafka broker with users", f"{error}: {HOW}")
    with KafkaCluster(tmp_path_factory.mktemp("kafka") / "nodes", settings=GUARDED) as cluster:
        yield cluster


@contextlib.contextmanager
def _container() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.waiting_utils import wait_for_logs

    (port,) = free_ports(1)
    container = DockerContainer(IMAGE).with_bind_ports(9092, port)
    settings = {
        "NODE_ID": "1",
        "PROCESS_ROLES": "broker,controller",
        "LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "AUTO_CREATE_TOPICS_ENABLE": "false",
        "LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS": "9223372036854775807",
    }
    for name, value in settings.items():
        container = container.with_env(f"KAFKA_{name}", value)
    with container:
        wait_for_logs(container, "Kafka Server started", timeout=START_WITHIN)
        yield f"127.0.0.1:{port}"


def _shared() -> str:
    """The broker of this test session, started by whichever worker comes first; it ends with the session."""
    jars()
    session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    note = Path(tempfile.gettempdir()) / f"tailrace-kafka-{os.getuid()}-{session}"
    with note.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.exists():
            log = note.with_suffix(".log").open("wb")
            guard = [sys.executable, __file__, "--for", str(session), "--note", str(note)]
            keeper = subprocess.Popen(guard, stdout=log, stderr=log, start_new_session=True)
            log.close()
            limit = time.monotonic() + 2 * START_WITHIN
            while not note.exists():
                if keeper.poll() is not None or time.monotonic() > limit:
                    raise OSError(f"the shared broker did not start: {note.with_suffix('.log').read_text()[-2000:]}")
                time.sleep(0.05)
            keeper.returncode = 0  # it outlives this process, and is not ours to wait for
        return str(json.loads(note.read_text())["bootstrap"])


def _keep(session: int, note: Path | None) -> None:
    """Keeps a broker until the process `session` has ended (0: until interrupted)."""
    folder = Path(tempfile.mkdtemp(prefix="tailrace-kafka-"))
    try:
        with KafkaCluster(folder / "nodes") as cluster:
            if note is None:
                print(f"Kafka {VERSION}: {cluster.bootstrap}", flush=True)
            else:
                fresh = note.with_suffix(".new")
                fresh.write_text(json.dumps({"bootstrap": cluster.bootstrap}))
                fresh.rename(note)
            with contextlib.suppress(KeyboardInterrupt):
                while not session or _lives(session):
                    time.sleep(0.3)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if note is not None:
            started = note.exists()
            for each in (note, note.with_suffix(".lock"), *([note.with_suffix(".log")] if started else [])):
                each.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    _keep(int(given.get("--for", "0")), Path(given["--note"]) if "--note" in given else None)
