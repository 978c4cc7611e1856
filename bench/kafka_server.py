"""A Kafka broker for the scenarios: a named one, else a container, else a node of our own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from ..model.errors import ConfigError
from .docker import docker_answers
from .kafka_jars import HOW, VERSION, NoKafka, jars
from .kafka_nodes import START_WITHIN, KafkaCluster
from .process import free_ports

#: The variable that names a broker, HOST:PORT.
VARIABLE = "TAILRACE_BENCH_KAFKA"
IMAGE = f"apache/kafka:{VERSION}"


@contextlib.contextmanager
def kafka_broker(folder: Path, address: str = "") -> Iterator[str]:
    """The address of a broker; one of our own has its data in `folder`. In this order: `address`, else the broker that
    TAILRACE_BENCH_KAFKA names; a container, where testcontainers is installed and a daemon answers; a node of our own,
    of the jars that KAFKA_HOME has, that are cached, or that Maven fetches. Raises ConfigError where there is none."""
    if named := address or os.environ.get(VARIABLE, ""):
        yield named
    elif importlib.util.find_spec("testcontainers") is not None and docker_answers():
        with kafka_container() as started:
            yield started
    else:
        try:
            jars()
        except NoKafka as error:
            raise ConfigError(
                f"no Kafka broker can be started here: {error}. Name one with --kafka HOST:PORT; or {HOW}"
            ) from error
        with KafkaCluster(folder) as cluster:
            yield cluster.bootstrap


@contextlib.contextmanager
def kafka_container() -> Iterator[str]:
    """The address of a broker in a container of its own."""
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
