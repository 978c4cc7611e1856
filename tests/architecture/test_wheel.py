"""The wheel holds what the tree holds, without tests, examples and docs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDINGS = (".py", ".pyi", ".proto", ".yaml", "py.typed", ".json", ".sql")
OUTSIDE = ("tests/", "examples/", "docs/", "deploy/", ".ci/")


def test_the_wheel_is_the_tree(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a clone")
    tree = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    copy = tmp_path / "tree"
    for name in tree:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())

    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]

    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("tailrace/")]
    shipped = {name.removeprefix("tailrace/") for name in names}
    wanted = {name for name in tree if name.endswith(ENDINGS) and not name.startswith(OUTSIDE)}
    assert shipped == wanted
