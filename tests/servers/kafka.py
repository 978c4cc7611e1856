"""Apache Kafka for tests: one broker that all tests of a session share, and nodes for a test alone, to be killed.

python tests/servers/kafka.py          a broker in the foreground, until it is interrupted
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tailrace.bench.docker import docker_answers
from tailrace.bench.kafka_jars import HOW, NEWEST, VERSION, NoKafka, cached, jars
from tailrace.bench.kafka_nodes import START_WITHIN, KafkaCluster
from tailrace.bench.kafka_server import IMAGE, kafka_container

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import none_to_be_had
from servers.kafka_guarded import GuardedKafka, guarded_settings

ADDRESS = "TAILRACE_TEST_KAFKA"

# One broker for all tests of a session.


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a real broker that all tests share, those of other pytest-xdist workers too: each test takes
    topics and groups of its own names."""
    if address := os.environ.get(ADDRESS):
        print(f"\nKafka: {address}, from {ADDRESS}")
        yield address
    elif docker_answers():
        with kafka_container() as address:
            print(f"\nKafka: {address}, a container of {IMAGE}")
            yield address
    else:
        try:
            address = _shared()["plain"]
        except NoKafka as error:
            none_to_be_had("a real Kafka", f"{error}: {HOW}; or set {ADDRESS}=host:port")
        print(f"\nKafka: {address}, a broker {VERSION} of our own")
        yield address


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A broker for one test alone, to be killed, restarted and cut off."""
    try:
        jars()
    except NoKafka as error:
        none_to_be_had("a Kafka broker that is killed", f"{error}: {HOW}; or set {ADDRESS}=host:port")
    with KafkaCluster(tmp_path / "kafka") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def newest_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker of the newest version, with Kafka's own defaults: it makes topics that somebody asks for, and bounds
    time stamps."""
    try:
        with KafkaCluster(tmp_path_factory.mktemp("newest") / "kafka", version=NEWEST, as_it_is=True) as cluster:
            yield cluster
    except NoKafka as error:
        none_to_be_had(f"Kafka {NEWEST}", f"{error}: {HOW}")


@pytest.fixture(scope="session")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """A broker with users, certificates and ACLs; see kafka_guarded.py. The shared one is such a broker when it is of
    our own; else there is one for this process of pytest."""
    try:
        if os.environ.get(ADDRESS) or docker_answers():
            folder = tmp_path_factory.mktemp("kafka")
            with KafkaCluster(folder / "nodes", settings=guarded_settings(folder / "certificates")) as cluster:
                yield GuardedKafka.of(cluster.nodes[0], folder / "certificates")
        else:
            yield GuardedKafka(**_shared())
    except NoKafka as error:
        none_to_be_had("a Kafka broker with users", f"{error}: {HOW}")


def expect_kafka() -> None:
    """Has the shared broker start meanwhile, for a session whose tests will ask for it; not where it is not ours, nor
    where its jars would have to be fetched first."""
    if cached() and not os.environ.get(ADDRESS) and not docker_answers():
        _begin()


def _begin() -> Path:
    """Starts the broker of this test session, unless somebody did; it ends with it. Returns where its addresses will
    be: beside a file that is there until it has ended."""
    session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    note = Path(tempfile.gettempdir()) / f"tailrace-kafka-{os.getuid()}-{session}"
    with note.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.with_suffix(".begun").exists():
            note.with_suffix(".begun").touch()
            guard = [sys.executable, __file__, "--for", str(session), "--note", str(note)]
            with note.with_suffix(".log").open("wb") as log:
                keeper = subprocess.Popen(guard, stdout=log, stderr=log, start_new_session=True)
            keeper.returncode = 0  # it outlives this process, and is not ours to wait for
    return note


def _shared() -> dict[str, str]:
    """The addresses of the broker of this test session, once it answers."""
    jars()
    note = _begin()
    limit = time.monotonic() + 2 * START_WITHIN
    while not note.exists():
        if not note.with_suffix(".begun").exists() or time.monotonic() > limit:
            raise OSError(f"the shared broker did not start: {note.with_suffix('.log').read_text()[-2000:]}")
        time.sleep(0.05)
    addresses: dict[str, str] = json.loads(note.read_text())
    return addresses


def _keep(session: int, note: Path | None) -> None:
    """Keeps a broker until the process `session` has ended (0: until interrupted)."""
    folder = Path(tempfile.mkdtemp(prefix="tailrace-kafka-"))
    try:
        with KafkaCluster(folder / "nodes", settings=guarded_settings(folder / "certificates")) as cluster:
            guarded = GuardedKafka.of(cluster.nodes[0], folder / "certificates")
            if note is None:
                print(f"Kafka {VERSION}: {guarded}", flush=True)
            else:
                fresh = note.with_suffix(".new")
                fresh.write_text(json.dumps(asdict(guarded)))
                fresh.rename(note)
            with contextlib.suppress(KeyboardInterrupt):
                while not session or _lives(session):
                    time.sleep(0.3)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if note is not None:
            started = note.exists()
            for ending in ("", ".lock", ".begun", *([".log"] if started else [])):
                note.with_suffix(ending).unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # or `import kafka` finds this file
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    _keep(int(given.get("--for", "0")), Path(given["--note"]) if "--note" in given else None)
