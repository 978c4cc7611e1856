"""Retention as the world sees it: nothing goes by its age before it is old by true time, whatever wall clocks say, and
nothing of the log that a known tailer has not settled goes at all."""

from __future__ import annotations

from .journal import ROUNDING, Journal
from .plan import Plan
from .sqlite_disk import Disk

#: Seconds ahead by which a wall clock makes something old that is kept for days.
DAY = 86_400.0
_STARTS = "SELECT s.name, p.start FROM partitions AS p JOIN streams AS s ON s.id = p.stream"
_ENDS = "SELECT s.name, max(b.first + b.count) FROM batches AS b JOIN streams AS s ON s.id = b.stream GROUP BY s.id"
_MARK = "SELECT position FROM checkpoint_marks WHERE source = ? AND partition = '0'"
#: Seconds by which a clock of 1 % drift may be ahead in a story.
DRIFT = 5.0


class RetentionCheck:
    """Looks after each commit at what is gone. A stream's tailer bears its name.

    Invariant: `_appended` has for each stream the ends that it had, and since when; `_tasks` are the queue's so far.
    """

    def __init__(self, plan: Plan, disk: Disk, journal: Journal) -> None:
        self._retention = plan.log_retention or 7 * DAY
        self._disk = disk
        self._journal = journal
        self._appended: dict[str, list[tuple[int, float]]] = {}
        self._starts: dict[str, int] = {}
        self._tasks: set[int] = set()

    def committed(self, file: str) -> None:
        """Checks what a commit of a file took away."""
        if file == "log":
            self._log()
        elif file == "queue":
            tasks = {number for (number,) in self._disk.rows("queue", "SELECT id FROM tasks")}
            for number in self._tasks - tasks:
                self._journal.wrong(f"gone: {number:016x} is not in the queue any more, where it is kept for days")
            self._tasks = tasks

    def _log(self) -> None:
        now = self._journal.now
        for stream, end in self._disk.rows("log", _ENDS):
            ends = self._appended.setdefault(stream, [(0, 0.0)])
            if end > ends[-1][0]:
                ends.append((end, now))
        for stream, start in self._disk.rows("log", _STARTS):
            before = self._starts.get(stream, 0)
            self._starts[stream] = start
            if start == before:
                continue
            rows = self._disk.rows("state", _MARK, (stream,))
            settled = rows[0][0] if rows else 0
            if start > settled:
                self._journal.wrong(f"trimmed: {stream} begins at {start}, and its tailer has settled {settled}")
            age = now - next(at for end, at in self._appended[stream] if end >= start)
            if age < self._retention - DRIFT - ROUNDING:
                self._journal.wrong(f"gone: {stream} begins at {start}, of which the last is {age:.3f} s old")
