"""Files that lie where the platform is started are not run by it, whatever they are called; the functions' folder stays
importable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.assembly.free_port import free_port

TAILRACE = [str(Path(sys.executable).parent / "tailrace")]
FUNCTIONS = """
import tailrace
import helpers

@tailrace.function()
async def greet(name: str) -> str:
    import statistics
    import greetings  # only now
    return greetings.HELLO + helpers.shown(name) + str(statistics.mean([1, 3]))
"""
#: A file that bears the name of a module of the standard library, and says when somebody runs it.
STRAY = "import os\nopen(os.path.join(os.path.dirname(__file__), 'ran'), 'a').write(__name__ + ' ')\n"
STRAYS = ("queue", "secrets", "calendar", "statistics", "platform", "types", "uuid", "random")
CALL = """
import sys, tailrace
print(tailrace.Client(sys.argv[1]).submit("greet", name="Ann").result(timeout=30))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    (tmp_path / "helpers.py").write_text("def shown(name):\n    return name + ' '\n")
    (tmp_path / "greetings.py").write_text("HELLO = 'hello '\n")
    for name in STRAYS:
        (tmp_path / f"{name}.py").write_text(STRAY)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TAILRACE_RUN_DIR": str(folder / "run")}


@pytest.fixture
def gateway(folder: Path) -> Iterator[str]:
    """The address of a platform that is started in the folder."""
    (folder / "configs").mkdir()
    addresses = {part: f"127.0.0.1:{free_port()}" for part in ("gateway", "scheduler", "stores", "delay")}
    for part, address in addresses.items():
        (folder / "configs" / f"{part}.yaml").write_text(f"listen: {address}\n")
    command = [*TAILRACE, "up", "tasks.py", "--config", "configs"]
    with subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True) as platform:
        assert platform.stderr is not None
        said = []
        for line in platform.stderr:
            said.append(line)
            if " tailrace  ready" in f" {line.strip()}":
                break
        else:
            raise AssertionError("".join(said))
        yield addresses["gateway"]
        platform.send_signal(signal.SIGTERM)
        platform.communicate(timeout=60)


@pytest.mark.trust(point=17)
def test_files_that_bear_the_names_of_standard_modules_are_not_run(folder: Path, gateway: str) -> None:
    # Given a platform that was started in a folder with such files, among functions and what they import
    # When a function runs
    done = subprocess.run(
        [sys.executable, "-c", CALL, gateway],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    # Then it had its own modules, and Python's, and none of the files was run
    assert done.stdout.strip() == "hello Ann 2", done.stderr[-800:]
    assert not (folder / "ran").exists(), (folder / "ran").read_text()


@pytest.mark.trust(point=17)
@pytest.mark.parametrize(
    ("module", "content"),
    [("calendar", FUNCTIONS), ("mine", "from secrets import PASSWORD\n"), ("mine.py", "import queue\nqueue.mine()\n")],
)
def test_a_module_of_ones_own_that_bears_a_standard_name_is_named(folder: Path, module: str, content: str) -> None:
    # Given functions in a module that is called as one of Python's is, or that want something of such a module
    (folder / f"{module.removesuffix('.py')}.py").write_text(content)
    # When they are to be run
    there = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    done = subprocess.run(
        [*TAILRACE, "worker", module, "--scheduler", there[0], "--gateway", there[1]],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # Then the message names the file, and says why and what to do
    name = {"calendar": "calendar.py", "mine": "secrets.py", "mine.py": "queue.py"}[module]
    assert done.returncode == 2, done.stderr
    assert str(folder / name) in done.stderr and "standard library" in done.stderr and "rename" in done.stderr.lower()
    assert "Traceback" not in done.stderr
