"""The proof of a journal: ids that ended, and ids that ran twice at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """The verdict of a journal. `overlaps`: ids of which an older execution still did something after a newer one had
    started."""

    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    overlaps: set[str] = field(default_factory=set)
    executions: int = 0


def judge(lines: Iterable[str]) -> Verdict:
    """Reads a journal in the order of its times."""
    verdict = Verdict()
    events = sorted((line.split() for line in lines if line.count(" ") == 5), key=lambda event: float(event[4]))
    newest: dict[str, tuple[str, str, str]] = {}
    for word, id, fence, attempt, _, pid in events:
        execution = (fence, attempt, pid)
        if word == "start":
            verdict.executions += 1
            verdict.started.add(id)
            newest[id] = execution
        elif newest.get(id) != execution:
            verdict.overlaps.add(id)
        if word == "end":
            verdict.ended.add(id)
    return verdict
