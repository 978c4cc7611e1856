"""The scenario `rivals` runs whole, small: on Kafka with the rivals that need no installation, on the servers of a
queue with each of them."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from servers import none_to_be_had

from tailrace.bench.kafka import Broker
from tailrace.bench.rivals.on_kafka import rivals
from tailrace.bench.rivals.on_queues import queue_rivals
from tailrace.bench.rivals.roster import RIVALS, chosen
from tailrace.model.errors import ConfigError


@pytest.mark.long(minutes=0.5)
async def test_tailrace_and_a_loop_by_hand_on_one_broker(kafka: str, tmp_path: Path) -> None:
    figures = await rivals(Broker(kafka, "kafka-python"), chosen("loop"), tmp_path, 20_000, lambda what, share: None)
    assert figures["items_per_s"] > 0 and figures["loop_items_per_s"] > 0
    assert figures["loop_ratio"] == pytest.approx(figures["items_per_s"] / figures["loop_items_per_s"])


@pytest.mark.long(minutes=0.5)
@pytest.mark.parametrize(
    ("engine", "name"), [(engine, rival.name) for engine in ("redis", "postgres") for rival in RIVALS[engine]]
)
async def test_tailrace_and_a_rival_on_one_server(engine: str, name: str, request: pytest.FixtureRequest) -> None:
    # Given a server, and the rival's library
    request.getfixturevalue(f"{engine}_server")
    try:
        [rival] = chosen(name, engine)
    except ConfigError as missing:
        none_to_be_had(f"{name} on {engine}", f"{missing}")

    # When both run a few items
    few = replace(rival, share=0.1)
    with tempfile.TemporaryDirectory() as folder:  # PostgreSQL's user may not pass through those of pytest
        figures = await queue_rivals(Path(folder), 6_000, lambda what, share: None, engine, [few], seconds=1.0)

    # Then each of them did all of it, and both are told in the same figures
    own = {figure for figure in figures if not figure.startswith(f"{name}_")}
    assert {f"{name}_{figure}" for figure in own} == set(figures) - own - {f"{name}_ratio", f"{name}_cpu_ratio"}
    assert all(value > 0 for value in figures.values())
    assert figures[f"{name}_ratio"] == pytest.approx(figures["items_per_s"] / figures[f"{name}_items_per_s"])


@pytest.mark.long(minutes=0.5)
@pytest.mark.timeout(280)
@pytest.mark.usefixtures("redis_server", "postgres_server")
async def test_a_chord_and_a_map_reduce_of_as_many_items() -> None:
    # Given Celery's library
    try:
        [rival] = chosen("celery", "redis")
    except ConfigError as missing:
        none_to_be_had("celery on redis", f"{missing}")

    # When both gather the results of a few items
    with tempfile.TemporaryDirectory() as folder:  # PostgreSQL's user may not pass through those of pytest
        figures = await queue_rivals(Path(folder), 3000, lambda what, share: None, "redis", [rival], "chord")

    # Then each gathered all of them after the last one had ended, and was as many times as fast as is said
    assert figures["items"] == 300 and all(value > 0 for value in figures.values())
    for where in ("sqlite", "postgres"):
        ratio = figures[f"tailrace_{where}_items_per_s"] / figures["celery_items_per_s"]
        assert figures[f"celery_{where}_ratio"] == pytest.approx(ratio)
