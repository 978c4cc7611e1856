"""The processes that functions under test start: they give signs of life in the name of their run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tailrace.bench.faults import plan
from tailrace.bench.faults.child import command
from tailrace.bench.faults.journal import FaultJournal, Line, read
from tailrace.bench.faults.path import QUEUE
from tailrace.bench.faults.verdict import Expected, judge


def test_a_child_that_outlives_its_run_is_an_overlap(tmp_path: Path) -> None:
    # Given a run that started a process, and whose own process is gone
    run = os.getpid(), os.getppid()
    FaultJournal(tmp_path).write("start", "a", 1, 1)
    subprocess.run(command(tmp_path, "a", 1, 1, run, 0.25), check=True)
    lines = read(tmp_path).lines
    ticks = [line for line in lines if line.word == "tick"]
    assert len(ticks) >= 2
    assert {(line.id, line.fence, line.pid, line.parent) for line in ticks} == {("a", 1, *run)}
    # When the item is started again before the child's last sign of life
    again = ticks[-1].at - 0.01
    lines += [Line("start", "a", 2, 1, again, 77, 7), Line("success", "a", 2, 1, again + 9, 77, 7)]
    # Then that is two at once, though the run itself wrote nothing any more
    assert [finding.law for finding in judge(lines, {"a": Expected(QUEUE)}).findings] == ["overlaps"]
    after = [line._replace(at=line.at + 1) if line.fence == 2 else line for line in lines]
    assert judge(after, {"a": Expected(QUEUE)}).clean


def test_half_of_those_in_threads_start_one_where_that_is_asked() -> None:
    items = plan.items(3000, seed=1)
    changed = plan.with_children(items)
    threaded = [number for number, item in enumerate(items) if item.function == "threaded"]
    assert [changed[number].function for number in threaded[:4]] == ["parent", "threaded", "parent", "threaded"]
    others = [each for number, each in enumerate(changed) if number not in threaded]
    assert others == [each for number, each in enumerate(items) if number not in threaded]
