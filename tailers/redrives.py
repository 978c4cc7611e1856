"""Redriven items of a stream: those that died in an order come back to their tailer, which lets them stand in the lines
of their keys once more.

The letter is where such an item rests: it is marked, its past knows this death (`DeadLetter.in_line`), and it stays
until the item ends, by its number, or dies again, which replaces it. So whoever has the stream next finds what waits,
and what a former owner had running is adopted like any other item. It runs at its own position, under its own id and a
fence of its owner's epoch; the frontier has passed it, and nothing of it is read from the source.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Container
from functools import partial

from ..model.dead_letter import DeadLetter, LetterFilter
from ..stores.dead_letters.dead_letters import LetterKeeping
from .partition import Partition
from .stream_core import StreamCore
from .takeover.epoch import Epoch

#: Redriven items of one pump that are in memory, at most, and about how many bytes of them are read at once.
MOST, MOST_BYTES = 256, 8 << 20
#: Letters that are listed at once, without their payloads.
PAGE = 1000


class Redrives:
    """Looks for redriven letters of one stream tailer, every `every` seconds. `see` returns its core, told how the
    world is now, and `carry_out` carries out the core's decisions."""

    def __init__(
        self,
        tailer: str,
        letters: LetterKeeping,
        epoch: Epoch,
        every: float,
        see: Callable[[], StreamCore],
        carry_out: Callable[[], None],
    ) -> None:
        self._tailer = tailer
        self._letters = letters
        self._epoch = epoch
        self._every = every
        self._see = see
        self._carry_out = carry_out

    async def opened(self) -> None:
        """Takes the letters of redriven items that a former owner had running and that were adopted, before anything
        else is read: until they have ended nothing else of their keys runs."""
        inherited = self._see().inherited
        parts = {name: part for name, part in self._see().partitions.items() if inherited.positions_of(name)}
        if parts:
            self._take(await self._found(parts, lambda part: inherited.positions_of(part.name)))
        for part in parts.values():
            inherited.passed(part)

    async def run(self) -> None:
        """Takes letters, once every item that was adopted has been read: those go first."""
        while True:
            core = self._see()
            if core.seen.active and not core.inherited.awaits_some:
                self._take(await self._found(core.partitions))
            await asyncio.sleep(self._every)

    def _take(self, letters: list[DeadLetter]) -> None:
        together: defaultdict[str, list[DeadLetter]] = defaultdict(list)
        for letter in letters:
            together[letter.partition].append(letter)
        core = self._see()
        for name, those in together.items():
            core.redrive(core.partitions[name], those)
        self._carry_out()

    async def _found(
        self, parts: dict[str, Partition], only: Callable[[Partition], Container[int]] | None = None
    ) -> list[DeadLetter]:
        """Letters that wait for their turn here, with their payloads, oldest first: of items that this owner knows to
        be settled, and not those that it has."""
        room = MOST - sum([len(part.redriven) for part in parts.values()])
        ids: list[str] = []
        after = 0
        while len(ids) < room:
            which = LetterFilter(tailer=self._tailer, moving=True)
            page = await self._epoch.guarded(partial(self._letters.list, which, PAGE, after))
            for letter in page:
                part = parts.get(letter.partition) if self._waits(letter) else None
                if part is None or letter.position in part.redriven or not part.frontier.is_settled(letter.position):
                    continue
                if only is None or letter.position in only(part):
                    ids.append(letter.id)
            if len(page) < PAGE:
                break
            after = page[-1].number
        if not ids[:room]:
            return []
        # What ended meanwhile has no letter any more, so the second look has only what is to run.
        asked = LetterFilter(ids=tuple(ids[:room]), moving=True)
        found = await self._epoch.guarded(partial(self._letters.list, asked, room, 0, MOST_BYTES))
        return [letter for letter in found if self._waits(letter)]

    def _waits(self, letter: DeadLetter) -> bool:
        return letter.in_line and letter.tailer == self._tailer
