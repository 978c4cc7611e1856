"""The settings of parts: a child gets them as its parent sends them, and settings that fit no part are refused."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tailrace.assembly.parts import (
    DelaySettings,
    GatewaySettings,
    NodeSettings,
    PartSettings,
    SchedulerSettings,
    StoreSettings,
    TailersSettings,
    WorkerSettings,
    from_data,
    to_data,
)
from tailrace.assembly.running import GRACE

HERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    "settings",
    [
        SchedulerSettings(config=Path("configs"), heartbeat=0.5, direct="auto"),
        WorkerSettings(modules=("a", "b.py"), schedulers=(HERE,), changes={"executors": 1, "pools": {"x": ["f"]}}),
        NodeSettings(data=Path("d"), scheduler=HERE, gateway=HERE, store=HERE, delay=HERE, tailers=(Path("t.yaml"),)),
        StoreSettings(data=Path("d")),
        GatewaySettings(store=HERE, data=Path("d")),
        DelaySettings(store=HERE, listen=HERE),
        TailersSettings(files=(Path("t.yaml"),), scheduler=HERE, delay=HERE, store=HERE, metrics=HERE),
    ],
    ids=lambda settings: settings.name,
)
def test_a_child_gets_what_its_parent_sent(settings: PartSettings) -> None:
    assert from_data(json.loads(json.dumps(to_data(settings)))) == settings


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"part": "oven"},
        {"part": "store"},
        {"part": "store", "data": "d", "lsten": HERE},
        {"part": "store", "data": 1},
        {"part": "worker", "modules": "a", "schedulers": []},
    ],
    ids=str,
)
def test_what_is_no_part_s_is_refused(data: dict[str, object]) -> None:
    with pytest.raises((msgspec.ValidationError, TypeError)):
        from_data(data)


def test_how_long_a_drain_and_a_start_of_a_worker_may_take_is_said_by_its_file(tmp_path: Path) -> None:
    # Given the file of workers whose runs, and whose modules, take minutes
    (tmp_path / "worker.yaml").write_text("grace: 5m\nload_limit: 10m\n")
    worker = WorkerSettings(config=tmp_path, modules=("a",), schedulers=(HERE,))
    # Then a drain lets runs end for as long, unless who starts the worker says otherwise
    assert worker.drain_time == 300.0
    assert replace(worker, changes={"grace": 0.2}).drain_time == 0.2
    assert replace(worker, grace=7.0).drain_time == 7.0
    # And a start may load the modules twice: in the worker, and then in its executors
    assert worker.ready_within > 2 * 600.0
    # And the other parts have the usual times
    other = SchedulerSettings(config=tmp_path)
    assert (other.drain_time, other.ready_within) == (GRACE, 60.0)
