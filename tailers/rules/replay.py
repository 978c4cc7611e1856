"""Positions of a stream's past that are run again. Positions that nobody knows exactly any more are named, never
guessed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...model.audit import Ending, Fate
from ...model.drop import Cause, Drop
from ...model.replay import Only
from .position_ranges import ranges

#: A range of positions, both ends included.
Span = tuple[int, int]
#: Fates of passed positions by the cause of their drop: an operator's word; or nothing there that could run.
_DROPPED = {Cause.GATE: Fate.DROPPED, Cause.SEEK: Fate.DROPPED}
_UNSEEN = {Cause.RETENTION: Fate.LOST, Cause.ABSENT: Fate.ABSENT}


class Known(NamedTuple):
    """Knowledge of the positions of a range.

    began    where the tailer's book begins: it never saw the positions below
    told     from there on `endings` have the positions that did not succeed
    endings  the endings with positions in the range; `drops` has the drops with such
    died     positions that became dead letters; None: some of them are not known one by one any more
    """

    began: int = 0
    told: int = 0
    endings: Sequence[Ending] = ()
    drops: Sequence[Drop] = ()
    died: Sequence[int] | None = ()


class Chosen(NamedTuple):
    """A choice. `spans` rise and neither overlap nor touch. `unknown`, for people: positions that nobody can tell apart
    now."""

    spans: list[Span]
    unknown: list[str]


def choose(only: Only, first: int, end: int, known: Known) -> Chosen:
    """Chooses the positions that are meant, from `first` to before `end`."""
    if only is Only.ALL:
        return Chosen([(first, end - 1)] if first < end else [], [])
    if only is Only.FAILED:
        if known.died is None:
            return Chosen(
                [], [f"dead letters of positions {first} to {end - 1} went so long ago that not each is known"]
            )
        return Chosen(_within(ranges(sorted({*known.died})), first, end), [])
    causes = _DROPPED if only is Only.DROPPED else _UNSEEN
    exact: list[Span] = [(first, known.began - 1)] if only is Only.UNSEEN else []
    unknown: list[str] = []
    for drop in known.drops:
        if (fate := causes.get(drop.cause)) is None:
            continue
        if drop.items == drop.last - drop.first + 1:
            exact.append((drop.first, drop.last))
        elif (told := _told(drop, fate, known)) is not None:
            exact.extend(told)
        else:
            unknown.append(f"{drop.items} of the positions {drop.first} to {drop.last} were, and not each is known")
    return Chosen(_within(exact, first, end), unknown)


def _told(drop: Drop, fate: Fate, known: Known) -> list[Span] | None:
    """Spans of the positions of a partly known drop that ended so, by the endings; None: these do not know either."""
    if drop.first < known.told:
        return None
    inside = [
        each for each in known.endings if each.last >= drop.first and each.first <= drop.last and fate in each.counts
    ]
    if any(each.plain != fate for each in inside):
        return None
    found = _within([(each.first, each.last) for each in inside], drop.first, drop.last + 1)
    return found if sum(last - first + 1 for first, last in found) >= drop.items else None


def without(spans: Iterable[Span], left_out: Sequence[int]) -> list[Span]:
    """The spans but for some positions. All rise."""
    found: list[Span] = []
    place = 0
    for first, last in spans:
        while place < len(left_out) and left_out[place] < first:
            place += 1
        while place < len(left_out) and left_out[place] <= last:
            if left_out[place] > first:
                found.append((first, left_out[place] - 1))
            first = left_out[place] + 1
            place += 1
        if first <= last:
            found.append((first, last))
    return found


def _within(spans: Iterable[Span], first: int, end: int) -> list[Span]:
    """The parts of the spans that are in a range, rising; spans that overlap or touch become one."""
    found: list[Span] = []
    for begin, last in sorted(spans):
        begin, last = max(begin, first), min(last, end - 1)
        if begin > last:
            continue
        if found and begin <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((begin, last))
    return found


class Course:
    """The progress of a run over spans: the positions that come next, from a position on.

    Invariant: `_place` is the first span that has a position from `at` on.
    """

    def __init__(self, spans: Sequence[Span], at: int = 0) -> None:
        self.at = at
        self._spans = spans
        self._place = 0
        self._skip()

    def _skip(self) -> None:
        while self._place < len(self._spans) and self._spans[self._place][1] < self.at:
            self._place += 1
        if self._place < len(self._spans):
            self.at = max(self.at, self._spans[self._place][0])

    @property
    def over(self) -> bool:
        """Whether nothing comes any more."""
        return self._place == len(self._spans)

    @property
    def rest(self) -> Span:
        """The remaining part of the span that comes next."""
        return self.at, self._spans[self._place][1]

    def next(self, limit: int, near: int) -> list[int]:
        """The next positions, `limit` at most, with no gap larger than `near` between them."""
        found: list[int] = []
        for first, last in self._spans[self._place :]:
            first = max(first, self.at)
            if len(found) >= limit or (found and first - found[-1] > near):
                break
            found.extend(range(first, min(last + 1, first + limit - len(found))))
        return found

    def passed(self, position: int) -> None:
        """Notes that everything below `position` was read."""
        self.at = max(self.at, position)
        self._skip()
