"""Dead letters at the gateway: listed, counted, purged, and made workloads again.

A redrive moves each letter exactly once, whatever dies in between: the letter is marked, its workload is submitted
under a token that the queue takes once, then the letter goes. One that goes back into a stream's order stays, marked,
until its tailer has ended its item (`tailers/redrives.py`). Letters that were marked when a gateway died, or when a
store did not answer, are finished by the next gateway, long before the queue forgets the tokens (with the workloads
that ended, a day later) and a workload could be submitted twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.dead_letter import EVERY, DeadLetter, LetterFilter, Moved
from ..model.errors import InvalidRequest, Overloaded, StoreFull, TailraceError, UserError
from ..model.redrive import came_back, goes_in_line, headers_of, homeless, past_of, refusal, token
from ..stores.dead_letters.dead_letters import LetterKeeping
from ..stores.jobs.jobs import JobRedrives
from ..stores.jobs.rules.callback import CALLBACK
from ..stores.queue.admission import SUBMISSION_PREFIX
from ..stores.queue.queue import NewItem, Queue
from ..wire.ports.letters import LetterCount, LetterCounts, LetterPage, Redriven, RedriveStep
from .config import GatewayConfig
from .known_functions import KnownFunctions

#: Dead letters of one answer by default, and at most.
USUAL_LETTERS = 100
MOST_LETTERS = 1000
#: Payload bytes that one step of a redrive reads.
STEP_BYTES = 8 << 20
#: Seconds before unfinished redrives are tried again.
PAUSE = 1.0

_LOG = logging.getLogger("tailrace.gateway")


class DeadLetterDesk:
    """Answers calls about dead letters (a LetterPort). One redrive runs at a time; the others wait for their turn."""

    def __init__(
        self,
        config: GatewayConfig,
        queue: Queue,
        letters: LetterKeeping,
        functions: KnownFunctions,
        clock: Clock,
        duties: Duties,
        jobs: JobRedrives | None = None,
    ) -> None:
        self._duties = duties
        self._jobs = jobs
        self._config = config
        self._queue = queue
        self._letters = letters
        self._functions = functions
        self._clock = clock
        self._turn = asyncio.Lock()
        self._left = asyncio.Event()  # a redrive may be unfinished
        self._left.set()
        self._finisher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to finish redrives that a gateway that ended left unfinished, now or when the stores answer."""
        self._finisher = self._duties.begin(self._finish(), "finish-redrives")

    async def stop(self) -> None:
        """Stops. Harmless twice. Unfinished redrives are finished by the next gateway."""
        finisher, self._finisher = self._finisher, None
        if finisher is not None:
            await cancel(finisher)

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """Dead letters, oldest first."""
        return LetterPage(await self._letters.list(_asked(which), _limit(limit), after), await self._letters.count())

    async def dead_letter(self, id: str) -> DeadLetter:
        """One dead letter with its payload."""
        letter = await self._letters.get(id)
        if letter is None:
            raise unknown_letter(id)
        return letter

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """Number of letters by function, and number of those that a redrive would refuse."""
        which, most = _asked(which), self._config.max_redrives
        counts = await self._letters.counts(which)
        worn = await self._letters.counts(replace(which, redrives=most)) if most else counts
        rows = [
            LetterCount(function, count, worn.get(function, 0), self._functions.get(function) is not None)
            for function, count in counts.items()
        ]
        return LetterCounts(rows, most)

    async def purge(
        self, which: LetterFilter, limit: int = MOST_LETTERS, why: str = "", run: str = ""
    ) -> dict[str, int]:
        """Deletes the oldest letters of a filter; to be called again until there are no more. One that is in line
        stays, since its item may run, unless its id is named: its tailer may be gone for good."""
        letters: list[DeadLetter] = []
        after = 0
        async with self._turn:
            while not letters and (page := await self._letters.list(_asked(which), _limit(limit), after)):
                letters = [letter for letter in page if which.ids or not letter.in_line]
                after = page[-1].number
            if letters:
                await self._letters.remove([letter.number for letter in letters])
        purged = Counter(letter.kind.function for letter in letters)
        if purged:
            _LOG.info("dead letters purged: %s", dict(purged))
        return dict(purged)

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Makes the oldest letters of a filter workloads again; to be called again after `next` until it is 0. Ids
        without a letter may name failed items of jobs that have none, since no next item could be made of their
        results."""
        async with self._turn:
            await self._finish_begun()  # their workloads may be dead by now, and the new letters lack their past
            letters = await self._letters.list(_asked(which), _limit(limit), after, STEP_BYTES)
            refused = await self._refused(letters)
            going = [letter for letter in letters if letter.id not in refused and not letter.in_line]
            became = {letter.id: letter.id for letter in letters if letter.in_line}
            became |= await self._move(going, refused)
            lone = [] if letters or after else await self._redrive_lone(which, _limit(limit))
        rows = lone + [
            Redriven(letter.id, letter.kind.function, became.get(letter.id, ""), refused.get(letter.id, ""))
            for letter in letters
        ]
        if became:
            _LOG.info("dead letters redriven: %s", dict(Counter(each.function for each in rows if each.workload)))
        return RedriveStep(rows, letters[-1].number if letters else 0)

    async def _refused(self, letters: Sequence[DeadLetter]) -> dict[str, str]:
        """Reasons not to redrive letters, by id."""
        refused: dict[str, str] = {}
        for letter in letters:
            if letter.in_line:
                continue
            function = letter.kind.function
            known = function == CALLBACK or self._functions.get(function) is not None
            if why := refusal(letter, self._config.max_redrives, known):
                refused[letter.id] = why
        ids = [letter.id for letter in letters if letter.id not in refused and letter.position < 0]
        for id, status in zip(ids, await self._queue.status(ids) if ids else (), strict=True):
            if status is not None and (why := came_back(status.state)):
                refused[id] = why
        return refused

    async def _move(self, letters: Sequence[DeadLetter], refused: dict[str, str]) -> dict[str, str]:
        """Redrives letters; returns the ids of their workloads. Adds letters that the queue refuses for good to
        `refused`."""
        if not letters:
            return {}
        became: dict[str, str] = {}
        try:
            await self._letters.mark([letter.number for letter in letters], True)
            became = await self._redrive_items(letters, refused)
            others = [letter for letter in letters if letter.id not in became and letter.id not in refused]
            became |= {letter.id: letter.id for letter in others if goes_in_line(letter)}
            others = [letter for letter in others if letter.id not in became]
            try:
                became |= await self._submit(others)
            except UserError:  # one of them cannot be stored: the others can
                for letter in others:
                    try:
                        became |= await self._submit([letter])
                    except UserError as error:
                        refused[letter.id] = str(error)
        except (Overloaded, StoreFull):  # nothing of this call was stored
            await self._settle(letters, became)
            raise
        except BaseException:
            self._left.set()
            raise
        await self._settle(letters, became)
        return became

    async def _redrive_items(self, letters: Sequence[DeadLetter], refused: dict[str, str]) -> dict[str, str]:
        """Redrives letters of items of jobs in their trees; returns the ids of their new workloads. Adds the others to
        `refused`, with the reasons."""
        ids = [letter.id for letter in letters if letter.position < 0]
        jobs = self._jobs
        answers = dict(zip(ids, await jobs.redrive(ids), strict=True)) if jobs is not None and ids else {}
        refused |= {id: answer.refused for id, answer in answers.items() if answer.refused}
        became = {id: answer.workload for id, answer in answers.items() if answer.workload}
        for letter in letters:
            if letter.id not in became and letter.id not in refused and (why := homeless(letter)):
                refused[letter.id] = why
        return became

    async def _redrive_lone(self, which: LetterFilter, limit: int) -> list[Redriven]:
        """Redrives failed items of jobs that have no letters, where the filter has nothing but ids."""
        if self._jobs is None or not which.ids or replace(_asked(which), ids=(), until=0.0) != EVERY:
            return []
        ids = [*dict.fromkeys(which.ids)][:limit]
        answers = dict(zip(ids, await self._jobs.redrive(ids), strict=True))
        became = [answer.workload for answer in answers.values() if answer.workload]
        statuses = zip(became, await self._queue.status(became) if became else (), strict=True)
        functions = {id: status.kind.function for id, status in statuses if status is not None}
        return [
            Redriven(id, functions.get(answer.workload, ""), answer.workload, answer.refused)
            for id, answer in answers.items()
            if answer.workload or answer.refused
        ]

    async def _submit(self, letters: Sequence[DeadLetter]) -> dict[str, str]:
        own = [letter for letter in letters if letter.kind.function == CALLBACK]
        others = [letter for letter in letters if letter.kind.function != CALLBACK]
        stored = await self._queue.submit([_item(letter) for letter in others]) if others else []
        told = await self._queue.tell_again([_item(letter) for letter in own]) if own else []
        return {letter.id: each.id for letter, each in zip([*others, *own], [*stored, *told], strict=True)}

    async def _settle(self, letters: Sequence[DeadLetter], became: dict[str, str]) -> None:
        """Removes letters that became workloads, and takes the mark from the others."""
        try:
            gone = [Moved(each.number, became[each.id], past_of(each)) for each in letters if each.id in became]
            if gone:
                await self._letters.moved(gone, self._clock.wall())
            stay = [letter.number for letter in letters if letter.id not in became]
            if stay:
                await self._letters.mark(stay, False)
        except BaseException:
            self._left.set()
            raise

    async def _finish(self) -> None:
        while True:
            await self._left.wait()
            self._left.clear()
            try:
                async with self._turn:
                    await self._finish_begun()
            except TailraceError as error:
                _LOG.warning("redrives that were begun wait for their stores: %s", error)
                self._left.set()
                await asyncio.sleep(PAUSE)

    async def _finish_begun(self) -> None:
        """Finishes the redrives of marked letters, but for those in line. The caller holds `_turn`."""
        after = 0
        while page := await self._letters.list(LetterFilter(moving=True), MOST_LETTERS, after):
            begun = tuple(letter.id for letter in page if not letter.in_line)
            if not begun:
                after = page[-1].number
                continue
            letters = await self._letters.list(LetterFilter(ids=begun, moving=True), MOST_LETTERS, 0, STEP_BYTES)
            refused: dict[str, str] = {}
            await self._move(letters, refused)
            for id, why in refused.items():
                _LOG.warning("a redrive of %s was not finished: %s", id, why)


def unknown_letter(id: str) -> InvalidRequest:
    """The error for the id of a letter that does not exist, or that the caller may not know of."""
    return InvalidRequest(f"there is no dead letter {id!r:.200}; `tailrace dead list` shows those there are")


def _item(letter: DeadLetter) -> NewItem:
    return NewItem(
        letter.kind,
        letter.payload,
        key=letter.key,
        headers=headers_of(letter),
        dedupe_key=SUBMISSION_PREFIX + token(letter),
    )


def _asked(which: LetterFilter) -> LetterFilter:
    """A filter without conditions that only this desk may set."""
    return replace(which, redrives=0, moving=False)


def _limit(limit: int) -> int:
    if not 0 <= limit <= MOST_LETTERS:
        raise InvalidRequest(f"limit is {limit}: at most {MOST_LETTERS} dead letters are taken at once")
    return limit or USUAL_LETTERS
