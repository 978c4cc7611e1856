"""Settings of all tests, and the servers that they may ask for."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
from dealing import deal
from in_memory import rest_in_memory
from long_tests import LongProgress, bound
from servers.collector import collector
from servers.kafka import expect_kafka, guarded_kafka, kafka, newest_kafka, own_kafka
from servers.kafka_sockets import close_what_is_left_behind
from servers.moto_s3 import moto, moto_server
from servers.object_emulators import azurite, fake_gcs
from servers.postgres import (
    made_postgres,
    made_schemas,
    own_postgres,
    postgres_pooler,
    postgres_schema,
    postgres_server,
)
from servers.prometheus import prometheus, prometheus_programs
from servers.redis import own_redis, redis_server
from servers.redis_cluster import redis_cluster
from servers.standby import with_standby

__all__ = [
    "azurite",
    "collector",
    "fake_gcs",
    "guarded_kafka",
    "kafka",
    "moto",
    "moto_server",
    "made_postgres",
    "made_schemas",
    "newest_kafka",
    "own_kafka",
    "own_postgres",
    "postgres_pooler",
    "own_redis",
    "prometheus",
    "prometheus_programs",
    "postgres_schema",
    "postgres_server",
    "redis_cluster",
    "redis_server",
    "with_standby",
]

rest_in_memory()

# Processes of the tests find each other in a place of their own, not in that of whoever runs them.
os.environ["TAILRACE_RUN_DIR"] = tempfile.mkdtemp(prefix="tailrace-run-")
atexit.register(shutil.rmtree, os.environ["TAILRACE_RUN_DIR"], ignore_errors=True)
close_what_is_left_behind()

#: How long an example takes says how busy the machine is, not whether the code is right. A property is tried on fewer
#: examples each time than is usual: it is tried often, and the long tests try more.
settings.register_profile("tailrace", deadline=None, max_examples=40)
settings.register_profile("long", deadline=None, max_examples=500)
settings.load_profile("tailrace")


def pytest_configure(config: pytest.Config) -> None:
    """Has the long tests say how far they are."""
    if config.option.markexpr == "long":
        settings.load_profile("long")
        config.pluginmanager.register(LongProgress())


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Replaces half surrogate pairs in the output of tests, which pytest-xdist cannot carry to its parent."""
    return _writable((yield))


def _writable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_writable(key): _writable(value) for key, value in data.items()}
    return type(data)(map(_writable, data)) if type(data) in (list, tuple) else data


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bounds long tests, before any are left out."""
    bound(config, items)


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_deal_items(items: list[pytest.Item]) -> None:
    """Deals tests to the processes of `make test`."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        deal(items, Path(__file__).parent, processes)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keeps the objects that every test needs from being looked through at each garbage collection: a tenth of their
    time."""
    if not session.config.option.collectonly and any(
        {"kafka", "guarded_kafka"} & {*getattr(item, "fixturenames", ())} for item in session.items
    ):
        expect_kafka()
    gc.collect()
    gc.freeze()
