"""Redriven dead letters, and what became of them: each became one workload, which brings its past along, or its item
stood in its stream's line once more, and succeeded; none was lost on its way, and no letter's former workload runs
beside the new one. Read from outside of every host."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any, NamedTuple, cast

import msgspec

from ...model.claim import State
from ...model.dead_letter import IN_LINE, Past
from ...model.redrive import token
from ...stores.queue.admission import SUBMISSION_PREFIX
from .journal import Execution, Journal
from .operator import Operator
from .plan import Plan
from .sqlite_disk import Disk

_LETTERS = "SELECT number, id, died_at, headers FROM dead_letters"
_ATTEMPTS = "SELECT id, attempts, first_seen FROM dead_letters"
_KEY = "SELECT key FROM dedupe WHERE id = ?"
_WORKLOAD = "SELECT id FROM dedupe WHERE key = ?"
#: Queries for the life of a tree's item before a workload, and for the one behind it.
_BEFORE = "SELECT former FROM job_redrives WHERE item = ?"
_BEHIND = "SELECT item FROM job_redrives WHERE former = ?"
_PAST = "SELECT past FROM redriven WHERE id = ?"
_STATE = "SELECT state FROM tasks WHERE id = ?"
_IN_LINE = "SELECT id FROM dead_letters JOIN dead_letters_moving USING (number) JOIN redriven USING (id)"
_MOVING = "SELECT count(*) FROM dead_letters_moving"

_past = msgspec.json.Decoder(Past).decode


class Letter(NamedTuple):
    """The fields of a dead letter that its token is made of, and its headers."""

    id: str
    died_at: float
    headers: str = "[]"

    @property
    def in_line(self) -> bool:
        """Whether its item goes back into its stream's line when it is redriven."""
        return IN_LINE[0] in self.headers


class Redriving:
    """A Guest. `gone` are the ids of letters that became workloads. Invariant: `_was` says of each workload of the
    queue that ran or is asked for which letter it came from; empty: none. `_former` names the lives before those of
    items of trees that ran or died, once somebody looked while the queue knew."""

    def __init__(self, plan: Plan, disk: Disk, journal: Journal, operator: Operator) -> None:
        self._plan = plan
        self._disk = disk
        self._journal = journal
        self._operator = operator
        self.gone: set[str] = set()
        self._letters: dict[int, Letter] = {}
        self._of_key: dict[str, str] = {}
        self._was: dict[str, str] = {}
        self._former: dict[str, str] = {}
        self._made: set[str] = set()
        journal.was = self.was
        journal.begins.append(self._begins)

    def was(self, id_: str) -> str:
        """The id of the letter that a workload was; empty: it was none."""
        if "/" in id_:
            return ""
        known = self._was.get(id_)
        if known is None:
            rows = self._disk.rows("queue", _KEY, (int(id_, 16),))
            known = self._was[id_] = self._of_key.get(rows[0][0], "") if rows else ""
            if known:
                self._made.add(id_)
        return known or self._life_before(id_)

    def _life_before(self, id_: str) -> str:
        """The letter of an item of a tree that has another life. The letter may go long after that life began, and the
        queue forgets lives with their tree."""
        if id_ not in self._former and self._plan.trees:
            self._former.update((id_, f"{row[0]:016x}") for row in self._disk.rows("queue", _BEFORE, (int(id_, 16),)))
        former = self._former.get(id_, "")
        return former if former in self.gone else ""

    def _line(self, id_: str) -> list[str]:
        """The letters that a workload was, the latest first."""
        line: list[str] = []
        while id_ := self.was(id_):
            line.append(id_)
        return line

    def _begins(self, run: Execution) -> None:
        """Checks that a workload whose letter became another one does not run under its own id any more, where the
        queue had said that it was over. (A stream's item may: its letter is durable before its checkpoint is.)"""
        if run.id in self.gone and "/" not in run.id:
            self._journal.wrong(f"redriven: {run.id} starts in {run.where}, and its letter became another workload")
        first = self._journal.stories.get(next(iter(reversed(self._line(run.id))), run.id))
        if first is not None and first.n != run.n:
            self._journal.wrong(f"redriven: {run.id} runs item {run.n}, and its letter was of item {first.n}")

    # ---- after each commit

    def committed(self, file: str) -> None:
        """Notes letters that came, and checks that those that went became workloads."""
        if file != "state":
            return
        self._journal.in_line.update(id_ for (id_,) in self._disk.rows("state", _IN_LINE))
        letters = {number: Letter(*fields) for number, *fields in self._disk.rows("state", _LETTERS)}
        if letters == self._letters:
            return
        there = {letter.id for letter in letters.values()}
        went = [letter for number, letter in self._letters.items() if number not in letters]
        for number, letter in letters.items():
            if number not in self._letters:
                self._of_key[_key(letter)] = letter.id
                self.was(letter.id)
        self._letters = letters
        for letter in went:
            if letter.id not in there:
                self._went(letter)

    def _went(self, letter: Letter) -> None:
        """Checks that a letter that is gone became a workload, whose past says so, or that its item ended well."""
        if letter.in_line:
            if all(run.how != "ok" for run in self._journal.stories[letter.id].executions):
                self._journal.wrong(f"lost: the letter of {letter.id} went, and its item did not succeed")
            return
        self.gone.add(letter.id)
        rows = self._disk.rows("queue", _WORKLOAD, (_key(letter),))
        if not rows and "/" not in letter.id:
            rows = self._disk.rows("queue", _BEHIND, (int(letter.id, 16),))
        if not rows:
            self._journal.wrong(f"lost: the letter of {letter.id} went, and the queue has nothing of it")
            return
        workload = f"{rows[0][0]:016x}"
        line = self._line(workload)
        past = self._past(workload)
        if past is None or past.redrives != len(line) or past.id != line[-1] or len(past.deaths) != len(line):
            self._journal.wrong(f"redriven: {workload} was {', '.join(line)}, and its past is {past}")

    def _past(self, workload: str) -> Past | None:
        rows = self._disk.rows("state", _PAST, (workload,))
        return _past(rows[0][0]) if rows else None

    # ---- when everything should be over

    def pending(self) -> Iterator[str]:
        """Lines about requests of the operator that are not over, and letters on their way."""
        for place in range(len(self._plan.redrives)):
            if place not in self._operator.stay:
                yield f"redrive {place} was never answered"
        for (count,) in self._disk.rows("state", _MOVING):
            if count:
                yield f"{count} letters are on their way"

    def made(self) -> Set[str]:
        """Ids of the workloads that letters became."""
        for (number,) in self._disk.rows("queue", "SELECT id FROM tasks"):
            self.was(f"{number:016x}")
        return self._made

    def at_rest(self) -> None:
        """Checks that the operator's answers are true, that the letters it asked for went, and that those of another
        death know their past."""
        wrong = self._journal.wrong
        for id_, workload in self._operator.moved:
            if self.was(workload) != id_ and not (workload == id_ and "/" in id_):
                wrong(f"redriven: the operator was told that {id_} became {workload}, which was {self.was(workload)!r}")
        for place, letters in self._operator.meant.items():
            for number, id_ in letters:
                if number in self._letters and id_ not in self._operator.stay.get(place, ()):
                    wrong(f"redriven: the letter of {id_} stays, which redrive {place} asked for")
        for id_, attempts, _ in self._disk.rows("state", _ATTEMPTS):
            self._died(id_, attempts)
        for id_ in self.gone:
            rows = [] if "/" in id_ else self._disk.rows("queue", _STATE, (int(id_, 16),))
            if rows and rows[0][0] != State.FATAL_FAILURE:
                wrong(f"redriven: {id_} is {State(rows[0][0]).label}, and its letter became another workload")

    def _died(self, id_: str, attempts: int) -> None:
        """Checks a letter that is there at the end: its attempts are those of this life alone, and its past tells of
        the others."""
        line, story = self._line(id_), self._journal.stories.get(id_)
        runs = 0 if story is None else len(story.executions)
        if attempts > runs:
            self._journal.wrong(f"redriven: {id_} ran {runs} times, and its letter counts {attempts} attempts")
        past = self._past(id_)
        if past is not None and past.id == id_:
            line = [id_] * past.redrives  # it stood in its stream's line each time
        if (0 if past is None else past.redrives) != len(line):
            was = ", ".join(line) or "no letter"
            self._journal.wrong(f"redriven: {id_} was {was}, and its letter's past is {past}")


def _key(letter: Letter) -> str:
    return SUBMISSION_PREFIX + token(cast(Any, letter))
