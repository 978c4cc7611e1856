"""Runs of faults around streams on servers of their own, as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Figures that must be zero.
ZERO = (
    "lost", "overlaps", "early", "duplicates_unexplained", "fences", "dead_unexpected", "strange", "damaged",
    "committed_past_unfinished", "committed_backwards", "not_committed_in_the_end", "more_duplicates_than_in_flight",
)  # fmt: skip


def streams_broken(scenario: str, folder: Path, seconds: float, *options: str) -> dict[str, Any]:
    """The figures of a run; a failure shows its output."""
    data = folder / "run"
    command = [sys.executable, "-m", "tailrace.cli", "bench", "--scenario", scenario, *options]
    command += ["--json", "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.stdout, done.stderr[-3000:]
    figures: dict[str, Any] = json.loads(done.stdout)
    findings = (data / "findings.txt").read_text()[:3000]
    assert {law: figures[law] for law in ZERO} == dict.fromkeys(ZERO, 0), f"seed {figures['seed']}:\n{findings}"
    assert not figures["not_put_in"]
    assert figures["completed"] + figures["dead_letters"] == figures["items"]
    return figures
