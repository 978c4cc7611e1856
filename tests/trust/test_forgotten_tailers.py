"""A tailer that is forgotten: nothing of it is left, whatever it read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.platform import Platform

FUNCTIONS = """
import os
import tailrace

@tailrace.function
async def note(name: str, path: str, size: int, modified: float) -> None:
    with open(os.environ["TAILRACE_TEST_NOTES"], "a") as notes:
        notes.write(name + "\\n")
"""


def platform_of(folder: Path, *tailers: Path) -> Platform:
    (folder / "noting.py").write_text(FUNCTIONS)
    return Platform(
        folder / "data",
        [str(folder / "noting.py")],
        tailers=tailers,
        heartbeat=0.5,
        environment={"TAILRACE_TEST_NOTES": str(folder / "notes")},
        worker={"executors": 1},
    )


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.2)
async def test_a_tailer_of_a_folder_that_was_forgotten_begins_anew(tmp_path: Path) -> None:
    def ran() -> list[str]:
        notes = tmp_path / "notes"
        return sorted(notes.read_text().split()) if notes.exists() else []

    async def until(names: list[str]) -> None:
        async with asyncio.timeout(30):
            while ran() != names:
                await asyncio.sleep(0.05)

    # Given a folder whose files ran, and whose tailer's file was then taken away
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_text(name)
    file = tmp_path / "in.yaml"
    file.write_text(f"name: files\nsource: {{kind: directory, path: {tmp_path / 'in'}}}\nfunction: note\n")
    platform = platform_of(tmp_path, file)
    try:
        await platform.start()
        await until(["a", "b"])
        words = ("tailer", "forget", "files", "--gateway", platform.gateway_address)
        # When it is forgotten while it runs, then that is refused
        said = await asyncio.to_thread(commands.tailrace, *words)
        assert said.returncode != 0 and "'files' runs" in said.stderr
        await platform.drain(10)
    finally:
        await platform.stop()
    platform = platform_of(tmp_path)
    try:
        await platform.start()
        # And once it does not, it is forgotten
        words = ("tailer", "forget", "files", "--gateway", platform.gateway_address)
        said = await asyncio.to_thread(commands.tailrace, *words, check=True)
        assert said.stdout == "files: forgotten\n"
        await platform.drain(10)
    finally:
        await platform.stop()
    # Then one of its name begins anew
    platform = platform_of(tmp_path, file)
    try:
        await platform.start()
        await until(["a", "a", "b", "b"])
    finally:
        await platform.stop()
