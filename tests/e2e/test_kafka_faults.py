"""`tailrace bench --scenario kafka_faults`, as a user would run it: three tailers share a topic through a group while
tailers, brokers and wires break. The journal that the functions write decides, and the offsets of the group."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from servers import none_to_be_had

from tailrace.bench.kafka_jars import HOW, NoKafka, jars

sys.path.insert(0, str(Path(__file__).parent))
from fault_runs import streams_broken


@pytest.fixture(autouse=True)
def kafka_jars() -> None:
    try:
        jars()
    except NoKafka as error:
        none_to_be_had("Kafka brokers that are killed", f"{error}: {HOW}")


@pytest.mark.long(minutes=1)  # with a broker of its own: too much beside other tests
def test_tailers_brokers_and_wires_break_under_load(tmp_path: Path) -> None:
    figures = streams_broken("kafka_faults", tmp_path, 290, "--items", "300", "--faults", "3", "--seed", "3")
    assert set(figures["by_kind"]) >= {"kill tailers", "kill kafka"} and figures["faults"] == 3
    assert figures["group_commits_seen"] > 12


@pytest.mark.long(minutes=13)
def test_twenty_restarts_twenty_kills_ten_dead_brokers_and_a_minute_of_failure(tmp_path: Path) -> None:
    figures = streams_broken("kafka_faults", tmp_path, 3500, "--items", "12000", "--faults", "71", "--seed", "5")
    times = {kind: row["faults"] for kind, row in figures["by_kind"].items()}
    assert (times["roll tailers"], times["kill tailers"], times["kill kafka"], times["outage"]) == (20, 20, 10, 1)
    # The healthy ones start as soon with one poisoned item in two hundred as without, but for a second at most.
    assert figures["start_max_ms_poison"] - figures["start_max_ms_healthy"] < 1000


@pytest.mark.long(minutes=5)
def test_three_brokers_of_which_each_is_killed(tmp_path: Path) -> None:
    figures = streams_broken(
        "kafka_faults", tmp_path, 1700, "--items", "3000", "--faults", "21", "--brokers", "3", "--seed", "7"
    )
    assert figures["by_kind"]["kill kafka"]["faults"] == 3
