"""Parts may be started in any order: each waits for the others, says so, and ends at once when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.assembly.free_port import free_port

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import tailrace

@tailrace.function()
async def greet(name: str) -> str:
    return "hello " + name
"""


class Part:
    """A part as a process; `said` waits until its standard error has a text."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = {**os.environ, "TAILRACE_LOG": "text"}
        self.process = subprocess.Popen(
            [*TAILRACE, *arguments], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
        )
        self.text = ""
        self._more = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._more:
                    self.text += line
                    self._more.notify_all()

    def said(self, text: str) -> None:
        with self._more:
            found = self._more.wait_for(lambda: text in self.text, timeout=60)
        assert found, f"never said {text!r}: {self.text}"

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.reader.join()
        return status


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Part]]:
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    (tmp_path / "queue.yaml").write_text("name: queue\nsource: {kind: queue}\nresults: true\n")
    parts: list[Part] = []

    def one(*arguments: str) -> Part:
        parts.append(Part(tmp_path, *arguments))
        return parts[-1]

    yield one
    for part in parts:
        if part.process.poll() is None:
            part.process.kill()
            part.process.wait()
        part.reader.join()


def test_every_part_waits_for_what_is_not_there_yet(start: Callable[..., Part], tmp_path: Path) -> None:
    store, gateway, scheduler, delay = (f"127.0.0.1:{free_port()}" for _ in range(4))
    # Given every part but the store that all of them need, in an order that none of them likes
    tailers = start("tailer", "run", "queue.yaml", "--scheduler", scheduler, "--delay", delay, "--store", store)
    worker = start("worker", "tasks.py", "--scheduler", scheduler, "--gateway", gateway)
    worker.said(f"scheduler {scheduler} (called because --scheduler names it) does not answer")
    schedules = start("scheduler", "--listen", scheduler, "--gateway", gateway)
    front = start("gateway", "--listen", gateway, "--store", store)
    later = start("delay", "--listen", delay, "--store", store)
    front.said("the gateway waits for its store")
    later.said("due items do not move yet")
    # When the store comes, then work goes through
    stores = start("store", "serve", "--listen", store)
    front.said("ready")
    later.said("due items move")
    worker.said("ready")
    code = (
        "import sys, tailrace, time\n"
        "client = tailrace.Client(sys.argv[1])\n"
        "until = time.monotonic() + 60\n"
        "while True:\n"
        "    try:\n"
        "        print(client.submit('greet', name='Ann').result(timeout=60))\n"
        "        break\n"
        "    except tailrace.TailraceError:\n"
        "        if time.monotonic() > until: raise\n"
        "        time.sleep(0.2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, gateway], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "hello Ann\n"
    # And nothing of them ended meanwhile
    for part in (tailers, worker, schedules, front, later, stores):
        assert part.process.poll() is None, part.text
        assert "Traceback" not in part.text
    assert [part.end() for part in (tailers, worker, schedules, front, later, stores)] == [0] * 6


def test_a_part_that_waits_ends_when_it_is_told_to(start: Callable[..., Part]) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    front = start("gateway", "--listen", "127.0.0.1:0", "--store", nobody)
    later = start("delay", "--listen", "127.0.0.1:0", "--store", nobody)
    front.said("waits for its store")
    later.said("due items do not move yet")
    assert (front.end(), later.end()) == (0, 0)
