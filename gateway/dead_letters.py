"""Dead letters at the gateway: listed, counted, purged, and made workloads again.

A redrive moves each letter exactly once, whatever dies in between: the letter is marked, its workload is submitted
under a token that the queue takes once, then the letter goes. What was marked when a gateway died, or when a store did
not answer, is finished by the next one; so the time in which a workload may be submitted twice (the queue forgets
tokens with the workloads that ended, a day later) never comes.
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
from ..model.redrive import came_back, homeless, past_of, refusal, token
from ..stores.dead_letters.dead_letters import LetterKeeping
from ..stores.jobs.jobs import JobRedrives
from ..stores.jobs.rules.callback import CALLBACK
from ..stores.queue.admission import SUBMISSION_PREFIX
from ..stores.queue.queue import NewItem, Queue
from ..wire.ports.letters import LetterCount, LetterCounts, LetterPage, Redriven, RedriveStep
from .config import GatewayConfig
from .known_functions import KnownFunctions

#: Dead letters of one answer, unless asked for fewer; and the most that may be asked for.
USUAL_LETTERS = 100
MOST_LETTERS = 1000
#: Payload bytes that one step of a redrive reads.
STEP_BYTES = 8 << 20
#: Seconds before what was left in the middle is tried again.
PAUSE = 1.0

_LOG = logging.getLogger("tailrace.gateway")


class DeadLetterDesk:
    """A LetterPort. One redrive at a time: the others wait for their turn."""

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
        self._left = asyncio.Event()  # something may be left in the middle
        self._left.set()
        self._finisher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Finishes what the gateway before it left in the middle, now or when its stores answer."""
        self._finisher = self._duties.begin(self._finish(), "finish-redrives")

    async def stop(self) -> None:
        """Harmless twice. What is in the middle is finished by the next gateway."""
        finisher, self._finisher = self._finisher, None
        if finisher is not None:
            await cancel(finisher)

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """Letters oldest first."""
        return LetterPage(await self._letters.list(_asked(which), _limit(limit), after), await self._letters.count())

    async def dead_letter(self, id: str) -> DeadLetter:
        """One with its payload."""
        letter = await self._letters.get(id)
        if letter is None:
            raise unknown_letter(id)
        return letter

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """How many there are of each function, and how many of them a redrive would refuse."""
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
        """Forgets the oldest of the letters meant; ask again until there are no more."""
        async with self._turn:
            letters = await self._letters.list(_asked(which), _limit(limit))
            if letters:
                await self._letters.remove([letter.number for letter in letters])
        purged = Counter(letter.kind.function for letter in letters)
        if purged:
            _LOG.info("dead letters purged: %s", dict(purged))
        return dict(purged)

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Makes the oldest of the letters meant workloads again; go on after `next` until it is 0. Of ids that no
        letter has those are meant that items of jobs have, of whose results nothing could be made: they have none."""
        async with self._turn:
            await self._finish_begun()  # what those became may be dead by now, and its letter without their past
            letters = await self._letters.list(_asked(which), _limit(limit), after, STEP_BYTES)
            refused = await self._refused(letters)
            going = [letter for letter in letters if letter.id not in refused]
            became = await self._move(going, refused)
            lone = [] if letters or after else await self._redrive_lone(which, _limit(limit))
        rows = lone + [
            Redriven(letter.id, letter.kind.function, became.get(letter.id, ""), refused.get(letter.id, ""))
            for letter in letters
        ]
        if became:
            _LOG.info("dead letters redriven: %s", dict(Counter(each.function for each in rows if each.workload)))
        return RedriveStep(rows, letters[-1].number if letters else 0)

    async def _refused(self, letters: Sequence[DeadLetter]) -> dict[str, str]:
        """Why letters stay, by id."""
        refused: dict[str, str] = {}
        for letter in letters:
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
        """The ids of the workloads that letters became. What the queue refuses for good joins the refused."""
        if not letters:
            return {}
        became: dict[str, str] = {}
        try:
            await self._letters.mark([letter.number for letter in letters], True)
            became = await self._redrive_items(letters, refused)
            others = [letter for letter in letters if letter.id not in became and letter.id not in refused]
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
        """Of letters of items of jobs the workloads that these have now. Those that stay join the refused."""
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
        """Items of jobs that failed and have no letters, where nothing but their ids is said."""
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
        stored = await self._queue.submit([_item(letter) for letter in letters]) if letters else []
        return {letter.id: each.id for letter, each in zip(letters, stored, strict=True)}

    async def _settle(self, letters: Sequence[DeadLetter], became: dict[str, str]) -> None:
        """Letters that became workloads go, the others are no longer marked."""
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
        """Moves what is marked. Whoever calls it has the turn."""
        while letters := await self._letters.list(LetterFilter(moving=True), MOST_LETTERS, 0, STEP_BYTES):
            refused: dict[str, str] = {}
            await self._move(letters, refused)
            for id, why in refused.items():
                _LOG.warning("a redrive of %s was not finished: %s", id, why)


def unknown_letter(id: str) -> InvalidRequest:
    """Said to whoever names a letter that there is not, or that is none of his business."""
    return InvalidRequest(f"there is no dead letter {id!r:.200}; `tailrace dead list` shows those there are")


def _item(letter: DeadLetter) -> NewItem:
    return NewItem(
        letter.kind,
        letter.payload,
        key=letter.key,
        headers=letter.headers,
        dedupe_key=SUBMISSION_PREFIX + token(letter),
    )


def _asked(which: LetterFilter) -> LetterFilter:
    """Without what only this desk asks of the store."""
    return replace(which, redrives=0, moving=False)


def _limit(limit: int) -> int:
    if not 0 <= limit <= MOST_LETTERS:
        raise InvalidRequest(f"limit is {limit}: at most {MOST_LETTERS} dead letters are taken at once")
    return limit or USUAL_LETTERS
