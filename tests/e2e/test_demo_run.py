"""The demo and the examples, run the way a newcomer runs them: real processes, a real kill."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.assembly.platform import Platform
from tailrace.demo.journal import check
from tailrace.demo.listing import python_files

EXAMPLES = Path(__file__).parents[2] / "examples"


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tailrace.cli", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


def test_the_demo_loses_nothing_and_says_so(tmp_path: Path) -> None:
    ran = demo("--json", "--files", "40", "--data", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    facts = json.loads(ran.stdout)
    assert (facts["lost"], facts["overlaps"], facts["killed_workers"]) == (0, 0, 1)
    assert facts["listed"] == 42 == facts["indexed"] + facts["dead_lettered"]
    assert facts["dead_lettered"] >= 2 and facts["throttled"] >= 1 and facts["retried"] >= 1
    assert facts["seconds"] > 0 and facts["items_per_s"] > 0 and facts["summarised"] == facts["indexed"]
    # And anybody can judge the run again by the journal and the folder.
    run = Path(facts["data"]).parent
    listing = [str(root / name) for root in (run / "stdlib", run / "broken") for name in python_files(root)]
    verdict = check((run / "journal").read_text().splitlines(), listing)
    assert verdict.clean and verdict.indexed == facts["indexed"]


@pytest.mark.parametrize(
    ("arguments", "says"), [(["--files", "3"], "--files 3"), (["--data", __file__], "cannot be used as a folder")]
)
def test_what_cannot_be_is_one_clear_message(arguments: list[str], says: str) -> None:
    ran = demo(*arguments)
    assert ran.returncode == 2
    assert says in ran.stderr and "Traceback" not in ran.stderr


async def test_the_example_sends_its_emails(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "data", [str(EXAMPLES / "send_email.py")])
    await platform.start()
    try:
        environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
        ran = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, str(EXAMPLES / "send_email.py")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        await platform.stop()
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["sent to ann@example.org at attempt 1", "sent to later@example.org at attempt 2"]
    assert "'nobody' is not an address" in lines[2]
