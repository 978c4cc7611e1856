"""`tailrace bench --scenario faults` and `--scenario restarts`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ...sdk.model.errors import ConfigError
from . import plan
from .report import broken, figures, show
from .run import Run, run

#: What each scenario does when nothing is said: items, faults.
USUAL = {"faults": (2000, 12), "restarts": (4000, 100)}


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """What to run. None: as usual; a seed of None is chosen and printed."""

    scenario: str = "faults"
    items: int | None = None
    faults: int | None = None
    seed: int | None = None
    heartbeat: float = 0.5
    data: Path | None = None
    as_json: bool = False


def main(options: FaultOptions) -> int:
    """Runs and prints. Exit status 0 when every law held, 1 otherwise: then its folder is kept, whoever chose it."""
    usual_items, usual_faults = USUAL[options.scenario]
    count = usual_items if options.items is None else options.items
    faults = usual_faults if options.faults is None else options.faults
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    rolling = options.scenario == "restarts"
    without = () if os.geteuid() == 0 and sys.platform == "linux" else ("disk",)
    steps = plan.restarts(faults, seed) if rolling else plan.faults(faults, seed, without)
    items = plan.items(count, seed)
    if rolling:
        items = [item for item in items if item.function != "killer"]  # its crashes would be taken for charges

    async def go(folder: Path) -> Run:
        mine = asyncio.current_task()
        assert mine is not None
        # Told to end, it ends what it started first, and gives its disk back.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, mine.cancel)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(options.scenario, total=1.0)

            def say(what: str, share: float) -> None:
                progress.update(task, description=f"{options.scenario}: {what}", completed=share)

            return await run(folder, items, steps, seed, options.heartbeat, say)

    if options.data is not None:
        options.data.mkdir(parents=True, exist_ok=True)
        if any(options.data.iterdir()):
            raise ConfigError(f"{options.data} is not empty: give --data a folder that does not exist yet")
    folder = Path(tempfile.mkdtemp(prefix="tailrace-faults-")) if options.data is None else options.data.resolve()
    try:
        result = asyncio.run(go(folder))
    except BaseException:
        if options.data is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if without and not rolling:
        result.skipped["disk"] = "a disk that can be filled needs Linux and root"
    if options.as_json:
        print(json.dumps({"scenario": options.scenario, **figures(result)}))
    else:
        show(result, attempts=rolling)
    wrong = broken(result, attempts=rolling)
    if options.data is None and not wrong:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    (folder / "report.json").write_text(json.dumps(figures(result), indent=1))
    (folder / "findings.txt").write_text("".join(f"{finding}\n" for finding in result.verdict.findings))
    (folder / "faults.txt").write_text("".join(f"{fault}\n" for fault in result.faults))
    if wrong:
        print(f"data, journals, logs and what was found are kept in {folder}", file=sys.stderr)
    return 1 if wrong else 0
