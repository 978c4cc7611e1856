"""`tailrace bench --scenario redis_stream_faults`, as a user would run it: three tailer processes share twelve streams
while tailers, their server and wires break. The journal that the functions write decides, and the checkpoints."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from servers import none_to_be_had

sys.path.insert(0, str(Path(__file__).parent))
from fault_runs import streams_broken

SCENARIO = "redis_stream_faults"


@pytest.fixture(autouse=True)
def redis_program() -> None:
    if shutil.which("redis-server") is None:
        none_to_be_had("a Redis that is killed", "install redis-server")


@pytest.mark.timeout(300)
def test_a_tailer_a_wire_and_the_server_break_under_load(tmp_path: Path) -> None:
    # When a tailer, its wire and the server are broken, one after the other
    figures = streams_broken(SCENARIO, tmp_path, 290, "--items", "200", "--faults", "3", "--seed", "3")

    # Then everything ended as it had to, and each stream's checkpoint was seen on its way
    assert set(figures["by_kind"]) >= {"kill tailers", "kill redis"} and figures["faults"] == 3
    assert figures["checkpoints_seen"] > 12


@pytest.mark.long(minutes=1.8)
def test_two_rounds_of_everything_that_breaks_around_the_streams(tmp_path: Path) -> None:
    # Given one item in two hundred that is poison, and killers
    figures = streams_broken(SCENARIO, tmp_path, 290, "--items", "1500", "--faults", "12", "--seed", "5")

    # Then the healthy ones start as soon as without, but for a second at most
    assert figures["start_max_ms_poison"] - figures["start_max_ms_healthy"] < 1000
    times = {kind: row["faults"] for kind, row in figures["by_kind"].items()}
    assert times["roll tailers"] == 2 and times["kill tailers"] >= 2 and times["kill redis"] >= 2
