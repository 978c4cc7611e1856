"""Settings of all tests, and the servers that they may ask for."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
from dealing import deal
from in_memory import rest_in_memory
from long_tests import LongProgress, bound
from servers.kafka import expect_kafka, guarded_kafka, kafka, own_kafka
from servers.kafka_sockets import close_what_is_left_behind
from servers.moto_s3 import moto, moto_server
from servers.object_emulators import azurite, fake_gcs
from servers.postgres import own_postgres, postgres_pooler, postgres_schema, postgres_server
from servers.redis import own_redis, redis_server
from servers.redis_cluster import redis_cluster

__all__ = [
    "azurite",
    "fake_gcs",
    "guarded_kafka",
    "kafka",
    "moto",
    "moto_server",
    "own_kafka",
    "own_postgres",
    "postgres_pooler",
    "own_redis",
    "postgres_schema",
    "postgres_server",
    "redis_cluster",
    "redis_server",
]

rest_in_memory()
close_what_is_left_behind()

#: How long an example takes says how busy the machine is, not whether the code is right. A property is tried on fewer
#: examples each time than is usual: it is tried often, and the long tests try more.
settings.register_profile("tailrace", deadline=None, max_examples=40)
settings.register_profile("long", deadline=None, max_examples=500)
settings.load_profile("tailrace")


def pytest_configure(config: pytest.Config) -> None:
    """The long tests say how far they are."""
    if config.option.markexpr == "long":
        settings.load_profile("long")
        config.pluginmanager.register(LongProgress())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any are left out: long tests stay within their bounds."""
    bound(config, items)


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_deal_items(items: list[pytest.Item]) -> None:
    """To the processes of `make test`."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        deal(items, Path(__file__).parent, processes)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What every test needs is not looked through again whenever one's garbage is collected: a tenth of their time."""
    if not session.config.option.collectonly and any(
        {"kafka", "guarded_kafka"} & {*getattr(item, "fixturenames", ())} for item in session.items
    ):
        expect_kafka()
    gc.collect()
    gc.freeze()
