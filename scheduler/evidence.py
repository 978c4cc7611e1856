"""Evidence for the clog rule: how the attempts of each function ended, gathered while outcomes pass by. Every success
counts, whatever attempt it was; of the failures only first ones that the function did not ask for.

On a healthy path it costs nothing: successes are counted only when something failed lately, and in the very batch in
which a failure comes. Counting takes a step at C speed for an item; the rule itself takes far longer, so it is asked
only for functions of which something failed, or that are frozen, and for the others now and then: a thousand successes
at once tell it what they would have told one after the other.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..model.outcome import Outcome
from ..model.workload import Ended
from .rules.flow import ATTEMPT, EXTRA, ID, KIND, REF, SESSION, Item

#: Longest text of a failure that is kept for people.
LONGEST = 200


@dataclass(slots=True)
class AttemptCounts:
    """Attempts of one function: how many ended well before the batch that is looked at, how many in it, the ordering
    keys of first ones that failed in it (empty: none), and why the last of them did."""

    earlier: int = 0
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
    """The evidence of all functions: how attempts ended. `watched`: functions whose successes are counted. `frozen`:
    since when (monotonic) frozen ones are. `probes`: the items that run as their probes, by session and ref.

    Invariant: an attempt that ended is counted once: in `_lately` (functions, in the order of the ends) or
    `_failed` until `take`, then in what that gave or in `_earlier`. Bounded: a number for each function, and what one
    report brings.
    """

    def __init__(self) -> None:
        self.watched: set[str] = set()
        self.frozen: dict[str, float] = {}
        self.probes: dict[tuple[Any, int], str] = {}
        self._lately: list[str] = []
        self._failed: defaultdict[str, AttemptCounts] = defaultdict(AttemptCounts)
        self._earlier: Counter[str] = Counter()
        self._probed: list[Probed] = []

    def take(self, frozen: Iterable[str]) -> tuple[dict[str, AttemptCounts], list[Probed]]:
        """Takes the counts to look at now: of functions with a failure since the last time, and of `frozen` ones with
        any end; and the ends of probes. Successes of other functions stay here for later."""
        if not (self._lately or self._failed or self._probed):
            return {}, []
        found, self._failed = dict(self._failed), defaultdict(AttemptCounts)
        probed, self._probed = self._probed, []
        counted = self._earlier
        looked_at = [*found, *(name for name in frozen if name not in found)]
        earlier = [counted.pop(name, 0) for name in looked_at]
        counted.update(self._lately)  # a list, at C speed; what is not looked at stays here, and is not touched again
        self._lately = []
        for name, before in zip(looked_at, earlier, strict=True):
            passed = counted.pop(name, 0)
            if passed or name in found:
                counts = found.setdefault(name, AttemptCounts())
                counts.earlier, counts.passed = before, passed
            elif before:
                counted[name] = before
        return found, probed

    def take_earlier(self) -> dict[str, int]:
        """Takes the numbers of attempts that ended well, by function, of which `take` said nothing."""
        earlier, self._earlier = self._earlier, Counter()
        return earlier

    def passed(self, items: Sequence[Item]) -> None:
        """Counts items that ended well."""
        self._lately += [item[KIND].function for item in items]
        if self.probes:
            self._probes_over(items, True)

    def ended(self, items: Sequence[Item], ends: Sequence[Ended]) -> None:
        """Counts items that ended otherwise, or have something to say. A wait that a function asked for (throttled) and
        an unknown end say nothing of it. Of items that ran together in a process that died at most one ended it:
        together they are one failure, however many they are. An item that ends a process alone is one failure, the
        first time."""
        died: set[str] = set()
        for item, end in zip(items, ends, strict=True):
            well = verdict(end)
            if well is None or (item[ATTEMPT] != 1 and not well):
                continue
            extra, function = item[EXTRA], item[KIND].function
            crashes, alone = (extra.crashes, extra.alone) if extra is not None else (0, False)
            if end.crashed and not alone:
                new = function not in died
                died.add(function)
            else:
                new = crashes == 0 or (end.crashed and crashes == 1)
            if new:
                if well:
                    self._lately.append(function)
                else:
                    counts = self._failed[function]
                    counts.failed.append(extra.key if extra is not None else "")
                    counts.why = _first_line(end.reason)
        if self.probes:
            for item, end in zip(items, ends, strict=True):
                self._probes_over((item,), verdict(end), _first_line(end.reason))

    def went_well(self, items: Iterable[tuple[Item, float]]) -> None:
        """Notes items that ended well and when each started (monotonic): one that started since its function froze
        shows that it works again, whether it was the probe or not."""
        for item, at in items:
            function = item[KIND].function
            if at > self.frozen.get(function, math.inf):
                self._probed.append(Probed(function, item[ID], True, ""))

    def unknown(self, items: Sequence[Item]) -> None:
        """Notes items that ended without having run, or of which nobody knows how they ended."""
        if self.probes:
            self._probes_over(items, None)

    def _probes_over(self, items: Sequence[Item], well: bool | None, why: str = "") -> None:
        for item in items:
            function = self.probes.pop((item[SESSION], item[REF]), None)
            if function is not None:
                self._probed.append(Probed(function, item[ID], well, why))


def verdict(end: Ended) -> bool | None:
    """The verdict of an end on its function: True (it works), False (it does not), or None (neither): it was told to
    wait, or asks for another try by itself (polling, mostly)."""
    if end.outcome == Outcome.SUCCESS:
        return True
    if end.outcome == Outcome.RETRY:
        return None if end.asked else False
    if end.outcome == Outcome.FATAL or (end.outcome == Outcome.LOST and end.crashed):
        return False
    return None


def _first_line(reason: str) -> str:
    return reason.partition("\n")[0][:LONGEST]
