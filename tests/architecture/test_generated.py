"""Generated files are fresh, and every file in configs/ loads with its model."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace import reference
from tailrace.assembly import schemas
from tailrace.assembly.files import MODELS, addresses, read_all
from tailrace.assembly.settings import ConfigDirectory
from tailrace.foundation.config import load
from tailrace.tailers.config import TailerConfig

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"


def test_the_wire_code_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.wire.generate", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schemas_are_fresh() -> None:
    assert schemas.stale() == [], "run python -m tailrace.assembly.schemas"


def test_the_reference_is_fresh() -> None:
    assert reference.stale() == [], "run python -m tailrace.reference"


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_part_has_a_working_file(name: str) -> None:
    load(CONFIGS / name, MODELS[name], environment={})


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("tailers/*")), ids=lambda path: path.name)
def test_every_tailer_file_works(path: Path) -> None:
    assert load(path, TailerConfig, environment={}).name == path.stem


def test_the_whole_directory_is_what_up_reads() -> None:
    assert sorted(addresses(read_all(ConfigDirectory(CONFIGS)))) == ["delay", "direct", "gateway", "scheduler", "store"]
    assert {path.name for path in CONFIGS.glob("*.yaml")} == set(MODELS)


def test_every_function_that_a_file_names_is_in_the_example() -> None:
    """`tailrace up --config configs --functions examples/shop.py` leaves no tailer without its function."""
    shop = set(re.findall(r"^(?:async )?def (\w+)", (ROOT / "examples/shop.py").read_text(), re.MULTILINE))
    files = [*CONFIGS.glob("tailers/*.yaml"), *(ROOT / "examples").glob("*.yaml")]
    named = {name for path in files for name in re.findall(r"^function: (\w+)$", path.read_text(), re.MULTILINE)}
    assert named
    assert named <= shop
