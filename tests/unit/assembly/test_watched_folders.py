"""Folders of tailers' files that are watched: files that come, change and go are in force, as the kubelet brings
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tailrace.assembly.reloading import Reloading
from tailrace.assembly.separate import SeparateTailers
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.errors import ConfigError
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.tailer_files import files_of
from tailrace.testing.clock import ManualClock

TEXT = "name: {name}\nsource: {{kind: log, stream: {name}}}\nfunction: {function}\n"


def text(name: str, function: str = "count") -> str:
    return TEXT.format(name=name, function=function)


class Volume:
    """A folder as the kubelet keeps one of a ConfigMap: files are links through `..data`, which is a link to a folder
    of one state. Another state is put in place by renaming that link; then links to new files are made, and those to
    files that are gone are taken away."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder, self._states = folder, 0
        folder.mkdir()
        self.swap(files)
        self.tidy()

    def swap(self, files: Mapping[str, str]) -> None:
        """Puts another state in place, whole: up to where the kubelet takes links away."""
        self._states += 1
        state = self.folder / f"..2026_11_28_{self._states}"
        state.mkdir()
        for name, told in files.items():
            (state / name).write_text(told)
        (self.folder / "..data_tmp").symlink_to(state.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")

    def tidy(self) -> None:
        """Takes away the links to files that are gone."""
        for path in self.folder.iterdir():
            if path.is_symlink() and not path.exists():
                path.unlink()


class World:
    """Folders of tailers that are looked at when a test says so, and the tailers that were made of them."""

    def __init__(self, *folders: Path, config: Path | None = None) -> None:
        self.made: list[dict[str, str]] = []
        self.reloading = Reloading(
            config, folders, declare=None, reconfigure=self._reconfigure, watch=True, clock=ManualClock()
        )

    async def _reconfigure(self, configs: Sequence[TailerConfig]) -> dict[str, str]:
        self.made.append({each.name: str(each.function) for each in configs})
        return {}

    async def look(self, times: int = 2) -> list[dict[str, str]]:
        """Looks so many times. Returns all that was made so far."""
        for _ in range(times):
            await self.reloading.look()
        return self.made


@pytest.mark.parametrize("as_configuration", [False, True])
async def test_a_volume_that_is_swapped_adds_changes_and_removes_tailers(
    tmp_path: Path, as_configuration: bool
) -> None:
    # Given a folder of the kubelet's, which was named, or is that of the configuration
    volume = Volume(tmp_path / "tailers", {"orders.yaml": text("orders")})
    world = World(config=tmp_path) if as_configuration else World(volume.folder)
    assert await world.look() == []
    # When it brings one more file, then that is in force after two looks, and what did not change is left alone
    volume.swap({"orders.yaml": text("orders"), "bills.yaml": text("bills")})
    assert await world.look(1) == []
    assert await world.look(1) == [{"orders": "count", "bills": "count"}]
    # When it brings another text, then that is
    volume.swap({"orders.yaml": text("orders", "sum"), "bills.yaml": text("bills")})
    assert (await world.look())[-1] == {"orders": "sum", "bills": "count"}
    # When it takes one away, then that is gone
    volume.swap({"bills.yaml": text("bills")})
    volume.tidy()
    assert (await world.look())[-1] == {"bills": "count"}
    # And when it brings the same once more, then nothing happens
    volume.swap({"bills.yaml": text("bills")})
    assert len(await world.look(3)) == 3
    assert world.reloading.troubles() == []


async def test_a_link_that_leads_nowhere_keeps_what_is_in_force_until_it_is_taken_away(tmp_path: Path) -> None:
    volume = Volume(tmp_path / "tailers", {"orders.yaml": text("orders"), "bills.yaml": text("bills")})
    world = World(volume.folder)
    # Given a kubelet that stopped between the swap and the links
    volume.swap({"bills.yaml": text("bills")})
    # When that is looked at, then nothing changes, and it is told
    assert await world.look(3) == []
    [trouble] = world.reloading.troubles()
    assert "orders.yaml: no such file" in trouble.what
    # And once the link is gone, so is the tailer
    volume.tidy()
    assert await world.look() == [{"bills": "count"}]
    assert world.reloading.troubles() == []


async def test_a_broken_file_keeps_what_is_in_force_and_is_told(tmp_path: Path) -> None:
    volume = Volume(tmp_path / "tailers", {"orders.yaml": text("orders")})
    world = World(volume.folder)
    # Given a file that is added, beside one that is wrong
    volume.swap({"orders.yaml": text("orders"), "bills.yaml": text("bills"), "wrong.yaml": "name: wrong\nsorce: {}\n"})
    assert await world.look(3) == []
    [trouble] = world.reloading.troubles()
    assert "wrong.yaml:2:" in trouble.what and "the former files are in force" in trouble.todo
    # When it is put right, then all of them are in force
    volume.swap({"orders.yaml": text("orders"), "bills.yaml": text("bills")})
    volume.tidy()
    assert await world.look() == [{"orders": "count", "bills": "count"}]


async def test_a_folder_that_goes_away_keeps_what_is_in_force_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "tailers"
    Volume(folder, {"orders.yaml": text("orders")})
    world = World(folder)
    # Given a folder that is moved away
    folder.rename(tmp_path / "elsewhere")
    assert await world.look(3) == []
    [trouble] = world.reloading.troubles()
    assert f"{folder}: no such file or folder" in trouble.what
    # When it is back, then it is told no more
    (tmp_path / "elsewhere").rename(folder)
    await world.look()
    assert world.reloading.troubles() == []


async def test_the_last_file_may_go_and_another_one_come(tmp_path: Path) -> None:
    volume = Volume(tmp_path / "tailers", {"orders.yaml": text("orders")})
    world = World(volume.folder)
    volume.swap({})
    volume.tidy()
    assert await world.look() == [{}]
    volume.swap({"bills.yaml": text("bills")})
    assert (await world.look())[-1] == {"bills": "count"}


def test_files_and_folders_are_taken_together_and_hidden_ones_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("b.yaml", "a.yml", ".a.yaml", "notes.txt"):
        (folder / name).write_text("")
    assert files_of([tmp_path / "more", folder / "b.yaml"]) == [folder / "a.yml", folder / "b.yaml", folder / "b.yaml"]


def separate(*files: Path, watch: bool = False) -> SeparateTailers:
    nowhere = "127.0.0.1:1"
    return SeparateTailers(files, ConfigDirectory(None), scheduler=nowhere, delay=nowhere, store=nowhere, watch=watch)


async def test_a_folder_that_is_missing_or_empty_is_told_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match="absent: no such file or folder; name the file of a tailer, or a folder"):
        separate(tmp_path / "absent", watch=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty: no file of a tailer \(\*\.yaml\); put one there"):
        separate(tmp_path / "empty")
    # And where it is watched, one may come
    separate(tmp_path / "empty", watch=True)
    assert "no file of a tailer (*.yaml) yet" in caplog.text
