"""Redis for tests: a server that the tests of one process share, and servers of a test's own, which may be killed and
started again with their data."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import none_to_be_had
from servers.packages import install
from servers.program import Program
from tailrace.bench.docker import docker_answers
from tailrace.bench.process import free_ports

ADDRESS = "TAILRACE_TEST_REDIS"
HOW = f"install redis-server, or set {ADDRESS}=redis://HOST:PORT/0"
IMAGE = "redis:7.2"
#: Every write is on disk before it is answered.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class LocalRedis:
    """redis-server started here. `settings` are more of its arguments; the data is kept from one start to the next."""

    def __init__(self, *settings: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-redis-"))
        self.port, self.bus = free_ports(2)
        if "--cluster-enabled" in settings:  # else its nodes would talk at the port 10,000 higher, which may not exist
            settings = (*settings, "--cluster-port", str(self.bus))
        self.address = f"redis://127.0.0.1:{self.port}/0"
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        self.program = Program(
            [*command, "--save", "", "--daemonize", "no", *DURABLE, *settings], self._answers, self._folder / "log"
        )
        self.program.start()

    def _answers(self) -> bool:
        try:
            with redis.Redis(port=self.port, socket_timeout=1.0, retry=Retry(NoBackoff(), 0)) as client:
                return bool(client.ping())
        except (redis.AuthenticationError, redis.ResponseError):
            return True  # it wants a password, but it is there
        except redis.RedisError:
            return False

    def stop(self) -> None:
        """Ends the server and removes its data."""
        self.program.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a real Redis that the tests of this process share: each test keeps to names of its own."""
    if address := os.environ.get(ADDRESS):
        print(f"\nRedis: {address.rpartition('@')[2]}, from {ADDRESS}")
        yield address
    elif docker_answers():
        from testcontainers.redis import RedisContainer

        with RedisContainer(IMAGE).with_command("redis-server " + " ".join(DURABLE)) as container:
            print(f"\nRedis: a container of {IMAGE}")
            yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
    else:
        server = started()
        print(f"\nRedis: {server.address}, a server of our own")
        yield server.address
        server.stop()


@pytest.fixture
def own_redis() -> Iterator[Callable[..., LocalRedis]]:
    """Starts servers for one test alone, with these arguments of redis-server: to be killed, filled and locked."""
    servers: list[LocalRedis] = []

    def start(*settings: str) -> LocalRedis:
        servers.append(started(*settings))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def started(*settings: str) -> LocalRedis:
    """Starts a server of our own, with these arguments of redis-server; the caller stops it."""
    if why := install("redis-server", "redis-server"):
        none_to_be_had("a real Redis", f"{why}: {HOW}")
    return LocalRedis(*settings)
