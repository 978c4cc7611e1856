"""Commands of `tailrace` for tests that give many: each is a process, forked from one that has the program loaded
(command.py). Commands as a user starts them, from the first import on, are in tests/e2e/test_parts_as_installed.py and
tests/architecture/test_wheel.py."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from scenes import command

#: Variables that are read once, while the program is loaded: there is a process for each value of it.
READ_ONCE = ("TAILRACE_PRIORITIES", "GRPC_EXPERIMENTS")


def tailrace(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60.0,
    check: bool = False,
    within: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, like `subprocess.run`, with its output as text. `within`: words before it, which
    become it (`ip netns exec NAME`)."""
    environment, words = {**(os.environ if env is None else env)}, ["tailrace", *arguments]
    if within:
        alone = [*within, sys.executable, "-m", "tailrace.cli", *arguments]
        return subprocess.run(alone, env=env, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=check)
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        streams = (nothing.fileno(), output.fileno(), errors.fileno())
        connection = command.give(
            _forking(*read_once(environment)), [*arguments], environment, str(cwd or Path.cwd()), streams
        )
        connection.settimeout(timeout)
        try:
            code = command.status(connection)
        except TimeoutError:
            raise subprocess.TimeoutExpired(words, timeout) from None
        said = []
        for each in (output, errors):
            each.seek(0)
            said.append(each.read().decode())
    done = subprocess.CompletedProcess(words, code, *said)
    if check:
        done.check_returncode()
    return done


def on_path(folder: Path) -> dict[str, str]:
    """Has a shell find a `tailrace` of this kind, by the environment that it returns; its script is in `folder`."""
    folder.mkdir()
    script = folder / "tailrace"
    script.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-SEP", command.__file__])} "$@"\n')
    script.chmod(0o755)
    return {command.PLACE: _forking(*read_once(os.environ)), "PATH": f"{folder}:{os.environ['PATH']}"}


def read_once(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, environment[name]) for name in READ_ONCE if name in environment)


@cache
def _forking(*loaded_with: tuple[str, str]) -> str:
    """Starts the process that forks commands, which ends with this one. Returns the path at which it listens."""
    folder = tempfile.mkdtemp(prefix="tailrace-commands-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = str(Path(folder) / "place")
    lifeline, _ = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        asked = [sys.executable, "-P", command.__file__, "--forking", str(listener.fileno()), str(lifeline)]
        environment = {name: value for name, value in os.environ.items() if name not in READ_ONCE} | dict(loaded_with)
        kept = subprocess.Popen(asked, env=environment, pass_fds=(listener.fileno(), lifeline), start_new_session=True)
    os.close(lifeline)
    kept.returncode = 0  # it ends when this process has, and is not ours to wait for
    return place
