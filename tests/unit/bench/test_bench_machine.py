"""The machine and the Python of a run, as the run tells them."""

import json
import os
import sys
from pathlib import Path

import pytest

from tailrace.bench.python_build import optimised, this_one
from tailrace.bench.run import BenchOptions, main
from tailrace.bench.surroundings import kind_of
from tailrace.bench.yardstick import yardstick_us


@pytest.mark.parametrize(
    ("configured", "prefix", "said"),
    [
        ("'--enable-optimizations' '--with-lto'", "/usr/local", True),  # official images, uv, Homebrew
        ("'--enable-shared' '--prefix=/usr'", "/usr", True),  # Debian asks make for it, not configure
        ("'--enable-shared' 'CFLAGS=-O3'", "/opt/python", False),  # pyenv, if it is not told
        ("", "/opt/python", None),
        (None, "C:\\Python", None),
    ],
)
def test_a_python_says_how_it_was_built(configured: str | None, prefix: str, said: bool | None) -> None:
    # Given what a Python knows of its own making, when it is asked, then it says so or that it does not know
    assert optimised(configured, prefix) is said


def test_a_run_says_which_python_it_ran_on_and_how_quick_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    # Given a scenario so small that it is over at once, when its figures are printed for machines
    main(BenchOptions("frontier", items=2_000, as_json=True))
    said = json.loads(capsys.readouterr().out)

    # Then what they compare with is beside them
    assert said["python"] == sys.version.split()[0]
    assert said["python_optimised"] is this_one()
    assert said["yardstick_us"] > 0
    assert said["niceness"] == os.getpriority(os.PRIO_PROCESS, 0)
    assert said["load_1m"] >= 0
    assert said["loop"] in ("asyncio", "uvloop")
    assert said["file_system"] or sys.platform != "linux"


def test_a_path_rests_on_the_deepest_mount_above_it() -> None:
    # Given a disk, memory mounted in it and something else over that, and a neighbour whose name begins likewise
    mounts = [
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw",
        "30 22 0:25 / /tmp rw - tmpfs tmpfs rw",
        "31 22 0:26 / /tmp rw - overlay overlay rw",
        "32 22 0:27 / /tmp\\040two rw - xfs /dev/vdb rw",
    ]
    # When it is asked what paths rest on, then the last one that hides the others is told
    found = [kind_of(Path(path), mounts) for path in ("/home/a", "/tmp", "/tmp/b/c", "/tmpx", "/tmp two/d")]
    assert found == ["ext4", "overlay", "overlay", "ext4", "xfs"]
    assert kind_of(Path("/a"), []) == ""


def test_the_least_of_the_rounds_counts() -> None:
    # Given three rounds, of which the first and the last were disturbed
    ticks = iter([0, 700_000, 1_000_000, 1_250_000, 2_000_000, 2_900_000])
    # When they are timed, then the undisturbed one counts
    assert yardstick_us(3, lambda: next(ticks)) == 250
