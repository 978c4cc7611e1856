"""`tailrace bench --scenario faults`, as a user would run it: processes are killed, frozen and cut off under load, and
the journal that the functions write decides."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

CLEAN = (
    *("lost", "overlaps", "early", "duplicates_unexplained", "fences", "dead_unexpected", "strange", "damaged"),
    *("began_anew", "kept_for_strangers"),
)


def bench(tmp_path: Path, seconds: float, *options: str, alone: bool = False) -> dict[str, Any]:
    """The figures of a run; a failure shows what was found. How soon things recover is asked only of a run that has the
    machine `alone`: beside other tests it says how busy that is."""
    data = tmp_path / "run"
    command = [sys.executable, "-m", "tailrace.cli", "bench", *options, "--json", "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.stdout, done.stderr[-3000:]
    figures: dict[str, Any] = json.loads(done.stdout)
    findings = (data / "findings.txt").read_text()[:3000]
    assert {law: figures[law] for law in CLEAN} == dict.fromkeys(CLEAN, 0), f"seed {figures['seed']}:\n{findings}"
    recovered = figures["recovery_p99_s"] <= figures["recovery_bound_s"]
    assert recovered or not alone, figures["by_kind"]
    assert done.returncode == (0 if recovered else 1), done.stderr[-3000:]
    return figures


@pytest.mark.long(minutes=1.2)  # test_faults.py has one of most kinds in `make test`
@pytest.mark.timeout(300)
def test_eight_faults_under_load_lose_nothing_and_run_nothing_twice_at_once(tmp_path: Path) -> None:
    figures = bench(tmp_path, 280, "--scenario", "faults", "--items", "2000", "--faults", "8", "--seed", "2")
    assert figures["faults"] == 8
    assert figures["completed"] + figures["dead_letters"] == figures["items"] >= 2000


@pytest.mark.long(minutes=2)
@pytest.mark.timeout(280)
@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_a_queue_on_a_server_that_is_killed_loses_nothing(engine: str) -> None:
    # PostgreSQL runs as another user, whom neither pytest's own folders let pass nor this one by itself
    with tempfile.TemporaryDirectory(prefix="tailrace-faults-") as folder:
        Path(folder).chmod(0o711)
        options = ("--scenario", "faults", "--engine", engine, "--items", "1000", "--faults", "8", "--seed", "3")
        figures = bench(Path(folder), 260, *options)
    assert figures["by_kind"]["kill server"]["faults"] == 2
    assert figures["completed"] + figures["dead_letters"] == figures["items"]


@pytest.mark.long(minutes=1)  # tests/e2e/test_rolling_restarts.py restarts each part in `make test`
@pytest.mark.timeout(200)
def test_rolling_restarts_charge_nobody(tmp_path: Path) -> None:
    figures = bench(tmp_path, 180, "--scenario", "restarts", "--items", "500", "--faults", "7", "--seed", "1")
    assert (figures["attempts_charged"], figures["lost"]) == (0, 0)


@pytest.mark.parametrize(
    ("items", "faults"),
    [
        pytest.param(20_000, 60, marks=pytest.mark.long(minutes=6)),
        pytest.param(200_000, 400, marks=pytest.mark.long(minutes=33)),
    ],
)
def test_many_faults_under_load(tmp_path: Path, items: int, faults: int) -> None:
    options = ("--items", str(items), "--faults", str(faults), "--seed", str(items))
    figures = bench(tmp_path, 3500, "--scenario", "faults", *options, alone=True)
    assert figures["faults"] == faults


@pytest.mark.long(minutes=6)
def test_a_hundred_rolling_restarts(tmp_path: Path) -> None:
    options = ("--scenario", "restarts", "--items", "20000", "--faults", "100", "--seed", "1")
    figures = bench(tmp_path, 1700, *options, alone=True)
    assert (figures["attempts_charged"], figures["lost"]) == (0, 0)
