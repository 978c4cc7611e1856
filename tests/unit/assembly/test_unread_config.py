"""A configuration directory that lies there and is not named is told of: it is not read."""

from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.settings import unread


@pytest.mark.parametrize(
    ("file", "folder"),
    [("configs/worker.yaml", "configs"), ("gateway.yaml", "."), ("configs/tailers/orders.yaml", "configs")],
)
def test_a_configuration_that_lies_there_is_found(tmp_path: Path, file: str, folder: str) -> None:
    # Given a file of a configuration directory
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("")

    # When somebody starts there without --config, then the folder to name is found
    assert unread(tmp_path) == tmp_path / folder


@pytest.mark.parametrize("file", ["docker-compose.yaml", "configs/app.yaml", "tailers/readme.md"])
def test_files_of_others_are_none(tmp_path: Path, file: str) -> None:
    # Given a file that no part reads
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("")

    # When looked for, then there is nothing to tell
    assert unread(tmp_path) is None


def test_the_examples_of_a_clone_are_not_offered() -> None:
    # Given a clone, whose folder `configs` has the examples
    clone = Path(tailrace.__path__[0])
    assert (clone / "configs" / "tailers" / "orders.yaml").is_file()

    # When somebody starts there without --config, then nobody sends him to them
    assert unread(clone) is None
