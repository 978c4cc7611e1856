"""The journal that the functions under test write themselves, and the judgement of it.

The truth of a run comes from here, not from the platform's counters: each line is one O_APPEND write at the moment a
function starts or ends, with the fence and the machine's monotonic clock. `check` compares it with the listing of the
folder and finds items that were lost or ran twice at once.

A line: `<word> <function> <id> <fence> <attempt> <monotonic> <pid> <subject>`; the subject may hold spaces.
Words: `start`; an end: `success`, `retry`, `throttled`, `fatal`; `submitted` (a follow-up, with its own id); `killed`
(written by the demo: this pid was dead by then).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

START = "start"
ENDS = ("success", "retry", "throttled", "fatal")
SUBMITTED = "submitted"
KILLED = "killed"
#: The id of a killed line: the worker itself; its executors have another.
WORKER = "worker"
WORDS = (START, *ENDS, SUBMITTED, KILLED)

#: The functions whose lines are judged: every file gets the first, every submitted follow-up the second.
INDEX = "index"
FOLLOW_UP = "summarise"

_FIELDS = 8


class DemoLine(NamedTuple):
    """One line of the journal, parsed."""

    word: str
    function: str
    id: str
    fence: int
    attempt: int
    monotonic: float
    pid: int
    subject: str


class DemoJournal:
    """Appends lines to a file that many processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(
        self, word: str, function: str, id: str, fence: int, attempt: int, subject: str, pid: int | None = None
    ) -> None:
        """Appends one line in one write, so that lines of several processes never mix."""
        subject = " ".join(subject.split("\n"))
        who = os.getpid() if pid is None else pid
        line = f"{word} {function} {id or '-'} {fence} {attempt} {time.monotonic():.6f} {who} {subject}\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode(errors="surrogateescape"))
        finally:
            os.close(descriptor)


class DemoFollower:
    """Reads the lines that were added to a journal since its last read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def more(self) -> list[DemoLine]:
        """The whole lines that were added. Raises ValueError with the text of a line that cannot be parsed."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]  # the rest is still being written
        self._offset += len(data)
        return [parse(text) for text in data.decode(errors="surrogateescape").splitlines()]


def parse(text: str) -> DemoLine:
    """The line of a text. Raises ValueError with the text when it cannot be parsed."""
    fields = text.split(" ", _FIELDS - 1)
    try:
        word, function, id, fence, attempt, monotonic, pid, subject = fields
        if word not in WORDS:
            raise ValueError
        return DemoLine(word, function, id, int(fence), int(attempt), float(monotonic), int(pid), subject)
    except ValueError:
        raise ValueError(f"not a line of a journal: {text[:200]!r}") from None


@dataclass(slots=True)
class _DemoRun:
    """One execution. Invariant: `end` is infinite until its end, or its process's death, is known."""

    start: DemoLine
    end: float = float("inf")
    ended: bool = False


@dataclass(slots=True)
class DemoVerdict:
    """The verdict of a journal. The lists name each case for people; `runs` counts starts.

    fences    workloads that began again under a fence that did not rise
    lost      files of the listing without an end, and submitted follow-ups without one
    overlaps  two executions of one workload at once
    strange   ends without a start: the journal itself is damaged
    repeated  subjects that succeeded more than once (allowed only where an outcome was lost)
    """

    listed: int = 0
    indexed: int = 0
    dead_lettered: int = 0
    summarised: int = 0
    submitted: int = 0
    retried: int = 0
    throttled: int = 0
    runs: int = 0
    killed_workers: int = 0
    repeated: int = 0
    lost: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    @property
    def ended(self) -> int:
        """Number of files that were indexed or are dead letters."""
        return self.indexed + self.dead_lettered

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, nothing ran twice at once, and the journal is not damaged."""
        return not (self.lost or self.overlaps or self.strange)


class Judge:
    """Judges a journal against a listing: `take` gets lines as they come, `verdict` judges those so far."""

    def __init__(self, listing: Iterable[str]) -> None:
        self._listing = dict.fromkeys(listing)
        self._runs: dict[str, list[_DemoRun]] = {}
        self._done: dict[tuple[str, str], set[str]] = {}  # function and subject: the ends that are final
        self._successes = 0
        self._submitted: dict[str, None] = {}
        self._verdict = DemoVerdict(listed=len(self._listing))

    def take(self, lines: Iterable[DemoLine]) -> None:
        """Takes more lines, in the order of the file."""
        for line in lines:
            self._verdict.killed_workers += line.word == KILLED and line.id == WORKER
            if line.word == START:
                self._verdict.runs += 1
                self._runs.setdefault(line.id, []).append(_DemoRun(line))
            elif line.word in ENDS:
                self._end(line)
            elif line.word == SUBMITTED:
                self._submitted[line.subject] = None
            else:
                self._bury(line)

    def _end(self, line: DemoLine) -> None:
        verdict = self._verdict
        mine = [
            run
            for run in self._runs.get(line.id, [])
            if not run.ended and (run.start.fence, run.start.pid) == (line.fence, line.pid)
        ]
        if not mine:
            verdict.strange.append(f"{line.id}: ended ({line.word}, fence {line.fence}) without a start")
            return
        mine[0].end, mine[0].ended = line.monotonic, True
        verdict.retried += line.word == "retry"
        verdict.throttled += line.word == "throttled"
        if line.word in ("success", "fatal"):
            self._done.setdefault((line.function, line.subject), set()).add(line.word)
            self._successes += line.word == "success"

    def _bury(self, line: DemoLine) -> None:
        for runs in self._runs.values():
            for run in runs:
                if not run.ended and run.start.pid == line.pid and run.start.monotonic <= line.monotonic:
                    run.end = min(run.end, line.monotonic)

    def missing(self) -> int:
        """Number of files and follow-ups that have no end yet."""
        files = sum((INDEX, subject) not in self._done for subject in self._listing)
        return files + sum((FOLLOW_UP, subject) not in self._done for subject in self._submitted)

    def verdict(self) -> DemoVerdict:
        """The verdict on the lines so far."""
        verdict = self._verdict
        of_index = [self._done.get((INDEX, subject), set()) for subject in self._listing]
        verdict.indexed = sum("success" in ends for ends in of_index)
        verdict.dead_lettered = sum(ends == {"fatal"} for ends in of_index)
        verdict.submitted = len(self._submitted)
        verdict.summarised = sum("success" in self._done.get((FOLLOW_UP, each), ()) for each in self._submitted)
        verdict.repeated = self._successes - sum("success" in ends for ends in self._done.values())
        verdict.lost = [subject for subject, ends in zip(self._listing, of_index, strict=True) if not ends] + [
            f"follow-up of {subject}" for subject in self._submitted if (FOLLOW_UP, subject) not in self._done
        ]
        verdict.overlaps, verdict.fences = [], []
        for id, runs in self._runs.items():
            if len(runs) > 1:
                _compare(id, runs, verdict)
        return verdict


def _compare(id: str, runs: list[_DemoRun], verdict: DemoVerdict) -> None:
    """Adds to the verdict the faults between the executions of one workload."""
    ordered = sorted(runs, key=lambda run: run.start.monotonic)
    until, fence = float("-inf"), -1
    for run in ordered:
        if run.start.monotonic < until:
            verdict.overlaps.append(f"{id}: attempt {run.start.attempt} (pid {run.start.pid}) began while another ran")
        if run.start.fence <= fence:
            verdict.fences.append(
                f"{id}: attempt {run.start.attempt} began under fence {run.start.fence}, after {fence}"
            )
        until, fence = max(until, run.end), max(fence, run.start.fence)


def check(lines: Iterable[str], listing: Iterable[str]) -> DemoVerdict:
    """The verdict on a whole journal against the listing of the folder. Pure. Raises ValueError for a line that cannot
    be parsed."""
    judge = Judge(listing)
    judge.take([parse(text) for text in lines])
    return judge.verdict()
