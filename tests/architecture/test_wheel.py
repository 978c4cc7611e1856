"""The wheel holds the tree, without tests, examples, docs and all else that only a clone needs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDINGS = (".py", ".pyi", ".proto", ".yaml", "py.typed", ".json", ".sql")
OUTSIDE = ("tests/", "examples/", "docs/", "deploy/", ".ci/", "bench/rivals/", "testing/simulation/bugs/")


@pytest.fixture(scope="module")
def tree() -> set[str]:
    """The names of all files that git keeps."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a clone")
    return {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def installed(tree: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the wheel."""
    tmp_path = tmp_path_factory.mktemp("wheel")
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
        archive.extractall(tmp_path / "installed")
    return tmp_path / "installed"


def test_the_wheel_is_the_tree(tree: set[str], installed: Path) -> None:
    inside = installed / "tailrace"
    shipped = {str(path.relative_to(inside)) for path in inside.rglob("*") if path.is_file()}
    wanted = {name for name in tree if name.endswith(ENDINGS) and not name.startswith(OUTSIDE)}
    assert shipped == wanted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("simulate --bugs", "--bug and --bugs need a clone"),
        ("simulate --bug whatever", "--bug and --bugs need a clone"),
        ("bench --scenario rivals --engine redis", "the scenario rivals is not in the installed package"),
    ],
)
def test_what_needs_a_clone_says_so(installed: Path, tmp_path: Path, line: str, said: str) -> None:
    code = "import sys; from tailrace.cli import main; sys.argv[0] = 'tailrace'; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *line.split()],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr and "Traceback" not in done.stderr


def test_the_simulation_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tailrace.testing.simulation.child", '{"seeds":[1]}'],
        env={**os.environ, "PYTHONPATH": str(installed), "PYTHONHASHSEED": "0"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"wrong":[]' in done.stdout
