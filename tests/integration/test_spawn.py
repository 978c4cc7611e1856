"""Parts as child processes: one that gives up its start says why, and by its own exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.parts import WorkerSettings
from tailrace.assembly.processes import PartFailed, spawn


@pytest.mark.parametrize(
    ("functions", "code"),
    [(None, 2), ("raise ValueError", 2), ("import os; os._exit(7)", 7)],
    ids=["none", "bad", "exit"],
)
async def test_a_part_that_gives_up_its_start_is_not_killed_while_it_ends(
    tmp_path: Path, functions: str | None, code: int
) -> None:
    # Given a file of functions that is not there, or with which nothing can begin
    file = tmp_path / "functions.py"
    if functions is not None:
        file.write_text(functions)
    # When a worker is started with it, Then it is told by the worker's own exit status
    with pytest.raises(PartFailed, match=rf"\(exit status {code}\)") as failed:
        await spawn(WorkerSettings(modules=(str(file),), schedulers=("127.0.0.1:1",), heartbeat=1.0))
    assert failed.value.code == code
