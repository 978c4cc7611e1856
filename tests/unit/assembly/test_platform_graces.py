"""The parts of `tailrace up` drain for as long as the worker's runs may take to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.platform import LAST_WORDS, Platform
from tailrace.assembly.processes import MARGIN
from tailrace.assembly.running import GRACE


@pytest.mark.parametrize("said", ["grace: 0", "grace: 5m", ""])
def test_who_hears_how_runs_end_drains_for_longer_than_the_worker(tmp_path: Path, said: str) -> None:
    # Given a platform whose file says how long runs may take to end
    (tmp_path / "worker.yaml").write_text(said)
    platform = Platform(tmp_path / "data", ["functions.py"], tmp_path)
    # Then its worker is told that, however often it is started
    worker = platform._worker_settings().drain_time
    assert worker == {"grace: 0": 0.0, "grace: 5m": 300.0, "": GRACE}[said]
    # And node and scheduler drain for longer: they hear what the worker stopped, which says so before it is killed
    for other in (platform._node_settings(), platform._scheduler_settings()):
        assert other.drain_time == max(GRACE, worker + LAST_WORDS)
    assert LAST_WORDS < MARGIN
