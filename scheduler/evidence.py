"""Evidence for the clog rule: how the first attempts of each function ended, gathered while outcomes pass by.

On a healthy path it costs nothing: successes are counted only for functions that something of failed lately, and in
the very batch in which a failure comes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..sdk.model.outcome import Outcome
from ..sdk.model.workload import Ended
from .rules.lanes import ATTEMPT, EXTRA, ID, KIND, REF, SESSION, Item

#: Longest text of a failure that is kept for people.
LONGEST = 200


@dataclass(slots=True)
class Counts:
    """First attempts of one function since the last review: how many ended well, the ordering keys of the others
    (empty: none), and why the last of them failed."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    why: str = ""


class Probed(NamedTuple):
    """The end of a probe: well, badly, or None: it says nothing."""

    function: str
    id: str
    well: bool | None
    why: str


class Evidence:
    """`watched`: functions whose successes are counted. `probes`: the items that run although their function is frozen,
    by session and ref."""

    def __init__(self) -> None:
        self.watched: set[str] = set()
        self.probes: dict[tuple[Any, int], str] = {}
        self.counts: defaultdict[str, Counts] = defaultdict(Counts)
        self.probed: list[Probed] = []

    @property
    def any(self) -> bool:
        """Whether a review has something to look at."""
        return bool(self.counts or self.probed)

    def passed(self, items: Sequence[Item]) -> None:
        """Items ended well."""
        fresh = [item[KIND].function for item in items if item[ATTEMPT] == 1]
        for function, count in Counter(fresh).items():
            self.counts[function].passed += count
        if self.probes:
            self._probes_over(items, True)

    def ended(self, items: Sequence[Item], ends: Sequence[Ended]) -> None:
        """Items ended otherwise, or have something to say. A wait that a function asked for (throttled) and an end that
        nobody knows say nothing of it. Of those that ran together in a process that died at most one ended it: together
        they are one failure, however many they are. What ends one alone is one, the first time."""
        died: set[str] = set()
        for item, end in zip(items, ends, strict=True):
            well = verdict(end)
            if well is None or item[ATTEMPT] != 1:
                continue
            extra, function = item[EXTRA], item[KIND].function
            crashes, alone = (extra.crashes, extra.alone) if extra is not None else (0, False)
            if end.crashed and not alone:
                new = function not in died
                died.add(function)
            else:
                new = crashes == 0 or (end.crashed and crashes == 1)
            if new:
                counts = self.counts[function]
                if well:
                    counts.passed += 1
                else:
                    counts.failed.append(extra.key if extra is not None else "")
                    counts.why = _first_line(end.reason)
        if self.probes:
            for item, end in zip(items, ends, strict=True):
                self._probes_over((item,), verdict(end), _first_line(end.reason))

    def unknown(self, items: Sequence[Item]) -> None:
        """Items ended without having run, or nobody knows how."""
        if self.probes:
            self._probes_over(items, None)

    def _probes_over(self, items: Sequence[Item], well: bool | None, why: str = "") -> None:
        for item in items:
            function = self.probes.pop((item[SESSION], item[REF]), None)
            if function is not None:
                self.probed.append(Probed(function, item[ID], well, why))


def verdict(end: Ended) -> bool | None:
    """What an end says of the function: it works, it does not, or nothing."""
    if end.outcome == Outcome.SUCCESS:
        return True
    if end.outcome in (Outcome.RETRY, Outcome.FATAL) or (end.outcome == Outcome.LOST and end.crashed):
        return False
    return None


def _first_line(reason: str) -> str:
    return reason.partition("\n")[0][:LONGEST]
