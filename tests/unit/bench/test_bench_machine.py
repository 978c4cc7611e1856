"""What a run says of the machine and the Python that it ran on."""

import json
import sys

import pytest

from tailrace.bench.built import optimised, this_one
from tailrace.bench.run import Options, main
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
    main(Options("frontier", items=2_000, as_json=True))
    said = json.loads(capsys.readouterr().out)

    # Then what they compare with is beside them
    assert said["python"] == sys.version.split()[0]
    assert said["python_optimised"] is this_one()
    assert said["yardstick_us"] > 0


def test_the_least_of_the_rounds_counts() -> None:
    # Given three rounds, of which the first and the last were disturbed
    ticks = iter([0, 700_000, 1_000_000, 1_250_000, 2_000_000, 2_900_000])
    # When they are timed, then the undisturbed one counts
    assert yardstick_us(3, lambda: next(ticks)) == 250
