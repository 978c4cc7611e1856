"""Watched files are read once they are written, and not while one was emptied."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tailrace.assembly.reloading import Reloading
from tailrace.gateway.environment import DeclaredFiles
from tailrace.testing.clock import ManualClock

MAIL = "functions:\n  mail: {rate: 5}\n"
BOTH = MAIL + "  charge: {concurrency: 2}\n"


class World:
    """Files that are looked at when a test says so, and which quotas they declared."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.declared = folder, list[list[str]]()
        self.write("quotas.yaml", MAIL)
        self.reloading = Reloading(folder, [], declare=self._declare, reconfigure=None, watch=True, clock=ManualClock())

    async def _declare(self, before: DeclaredFiles, now: DeclaredFiles) -> None:
        self.declared.append([each.function for each in now.quotas])

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    async def look(self, times: int = 1) -> list[list[str]]:
        """Looks so many times, and returns all that was declared so far."""
        for _ in range(times):
            await self.reloading.look()
        return self.declared


async def test_a_file_is_read_once_it_has_been_the_same_at_two_looks(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert await world.look(2) == []
    # Given a file that is being written
    world.write("quotas.yaml", "functions:\n")
    assert await world.look() == []
    # When the rest of it comes
    world.write("quotas.yaml", BOTH)
    assert await world.look() == []
    # Then it is read once nobody writes it any more, and once
    assert [sorted(names) for names in await world.look(3)] == [["charge", "mail"]]


async def test_a_file_that_was_emptied_changes_nothing_and_is_told_until_it_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    # Given a file that was emptied, by a program that writes it later
    world.write("quotas.yaml", "")
    with caplog.at_level(logging.ERROR, "tailrace.reload"):
        assert await world.look(4) == []
    # Then nothing changes, and it is told, once in the log
    [trouble] = world.reloading.troubles()
    assert "quotas.yaml: empty: write its content, or {} for no settings at all" in trouble.what
    assert len(caplog.records) == 1
    # And once it says that there is nothing, so it is
    world.write("quotas.yaml", "{}\n")
    assert await world.look(2) == [[]]
    assert world.reloading.troubles() == []


async def test_an_operator_who_asks_for_a_reload_has_an_empty_file_taken_for_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("quotas.yaml", "")
    await world.look(2)
    # When somebody asks for it
    [change] = await world.reloading.reload()
    # Then it is in force, and watched from there on
    assert (change.file, change.effect, world.declared) == ("quotas.yaml", "in force", [[]])
    await world.look(2)
    assert (world.reloading.troubles(), world.declared) == ([], [[]])


async def test_a_file_that_is_written_while_it_is_read_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.write("quotas.yaml", BOTH)
    read = world.reloading._read

    def emptied() -> object:
        world.write("quotas.yaml", "")
        return read()

    # Given a program that empties the file behind the second look
    monkeypatch.setattr(world.reloading, "_read", emptied)
    assert await world.look(2) == []
    # Then what was read of it is not in force, and what is written in the end is
    monkeypatch.undo()
    assert await world.look(2) == []
    world.write("quotas.yaml", "functions:\n  charge: {concurrency: 2}\n")
    assert await world.look(2) == [["charge"]]
