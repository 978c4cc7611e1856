"""The journal that the functions under test write themselves: the truth of a run, even where the platform errs.

One file per process, one line per event, each line one O_APPEND write at the moment it happens:

    <word> <id> <fence> <attempt> <monotonic> <pid> <parent> <until>

Words: `start`; `tick`, still running; ends: `success`, `retry`, `throttled`, `fatal`; `crash`, about to end its own
process. `until`: for retry and throttled, CLOCK_MONOTONIC before which the next attempt may not start; else 0.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

START = "start"
TICK = "tick"
SUCCESS = "success"
RETRY = "retry"
THROTTLED = "throttled"
FATAL = "fatal"
CRASH = "crash"
#: Words after which a run is over, and the platform knows it unless something broke on the way.
ENDS = frozenset({SUCCESS, RETRY, THROTTLED, FATAL})
WORDS = ENDS | {START, TICK, CRASH}

SUFFIX = ".journal"


class Line(NamedTuple):
    """One line, read."""

    word: str
    id: str
    fence: int
    attempt: int
    at: float
    pid: int
    parent: int
    until: float = 0.0


class FaultJournal:
    """Appends lines to this process's own file in a folder; made anew after a fork. `run`: the process in whose name it
    writes, and that one's parent, where it writes for another one."""

    def __init__(self, folder: Path, run: tuple[int, int] | None = None) -> None:
        self._folder = folder
        self._run = run
        self._descriptor = -1
        self._pid = 0

    def write(self, word: str, id: str, fence: int, attempt: int, until: float = 0.0) -> None:
        """Writes one line at once, so that a process that dies leaves whole lines only."""
        pid = os.getpid()
        if pid != self._pid:
            path = self._folder / f"{pid}{SUFFIX}"
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._pid = pid
        who, parent = self._run or (pid, os.getppid())
        text = f"{word} {id} {fence} {attempt} {time.monotonic():.6f} {who} {parent} {until:.6f}\n"
        os.write(self._descriptor, text.encode())


def parse(text: str) -> Line | None:
    """A line from its text; None: it is no line."""
    try:
        word, id, fence, attempt, at, pid, parent, until = text.split(" ")
        line = Line(word, id, int(fence), int(attempt), float(at), int(pid), int(parent), float(until))
    except ValueError:
        return None
    return line if word in WORDS and until.rpartition(".")[2].isdigit() and len(until.rpartition(".")[2]) == 6 else None


class JournalReading(NamedTuple):
    """The journal as it was read: its lines, and the texts that are no lines (a torn write, a damaged file)."""

    lines: list[Line]
    damaged: list[str]


def read_texts(texts: Iterable[str]) -> JournalReading:
    """Lines of journals given as whole texts. A last line without its end is damage, whatever it says."""
    lines: list[Line] = []
    damaged: list[str] = []
    for text in texts:
        whole, _, torn = text.rpartition("\n")
        for each in whole.split("\n") if whole else ():
            line = parse(each)
            if line is None:
                damaged.append(each[:200])
            else:
                lines.append(line)
        if torn:
            damaged.append(torn[:200])
    return JournalReading(lines, damaged)


def read(folder: Path) -> JournalReading:
    """Reads every journal of a folder."""
    return read_texts(path.read_text(errors="replace") for path in sorted(folder.glob(f"*{SUFFIX}")))


class Follower:
    """Reads lines that were added to the journals of a folder since its last look; cheap to ask often."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, int] = {}

    def more(self) -> list[Line]:
        """Whole lines that were added; a line that is still being written waits, damage is left to `read`."""
        found: list[Line] = []
        for entry in os.scandir(self._folder):
            offset = self._offsets.get(entry.name, 0)
            if not entry.name.endswith(SUFFIX) or entry.stat().st_size <= offset:
                continue
            with Path(entry.path).open("rb") as file:
                file.seek(offset)
                data = file.read()
            data = data[: data.rfind(b"\n") + 1]
            self._offsets[entry.name] = offset + len(data)
            found += [line for text in data.decode(errors="replace").splitlines() if (line := parse(text))]
        return found
