"""The event loop that a process of the platform runs on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from tailrace.foundation.loop import VARIABLE, loop_factory, run
from tailrace.model.errors import ConfigError


async def loop_here() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_the_faster_loop_is_used_where_it_is_installed_and_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for choice, runs_on in (("", "uvloop"), ("uvloop", "uvloop"), ("asyncio", "asyncio")):
        monkeypatch.setenv(VARIABLE, choice)
        assert run(loop_here()) == runs_on


def test_without_it_asyncio_serves_and_who_asks_for_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory("") is None
    with pytest.raises(ConfigError, match=r"tailrace\[fast\]"):
        loop_factory("uvloop")


def test_another_choice_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "trio")
    with pytest.raises(ConfigError, match="TAILRACE_LOOP=trio: expected asyncio or uvloop"):
        run(loop_here())


@pytest.mark.parametrize(("choice", "said"), [("uvloop", "Fatal Python error: Aborted"), ("asyncio", "")])
def test_a_process_that_libuv_aborts_says_where_it_was(choice: str, said: str) -> None:
    """libuv does so, without a word, when somebody closed a descriptor that it was to watch."""
    program = "import os\nfrom tailrace.foundation.loop import run\nasync def main():\n    os.abort()\nrun(main())"
    environment = {**os.environ, VARIABLE: choice}
    environment.pop("PYTHONFAULTHANDLER", None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == -signal.SIGABRT
    assert said in done.stderr
    assert ("in main" in done.stderr) == bool(said)
