"""The notes of the lives of what a tailer reads (model/life.py), beside its checkpoints; and its choice of how to go on
with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ...foundation.logger import Logger
from ...model.errors import NotConnected, PositionsGone, Unavailable
from ...model.life import Life, named
from .checkpoints import Checkpoints, Mark

#: The notes are kept under this name and the tailer's, always with one epoch: each is written by the first who reads.
NOTES = "@lives."
EPOCH = 1
#: The number of entries of each Redis Stream that the checkpoint has passed is kept under this name and the tailer's,
#: with the same epoch, since it stays true whichever process wrote it.
ENTRIES = "@entries."
#: What each choice but `stop` does.
HOW = {"from_start": "reads it from its start", "group": "goes on at the offsets that the group has there"}

log = Logger("tailrace.tailer")

N = TypeVar("N")


class Lives:
    """The lives of what one tailer reads. `choice`: how it goes on with another one, of `choices`.

    Invariant: what is known here of a name is as old as the last `load`, or newer. Each note has a higher position than
    the one before, so that a late one of another process changes nothing.
    """

    def __init__(
        self, checkpoints: Checkpoints, tailer: str, choice: str = "stop", choices: Sequence[str] = ("from_start",)
    ) -> None:
        self._checkpoints = checkpoints
        self._tailer = tailer
        self._choice = choice
        self._choices = choices
        self._marks: dict[str, Mark] = {}

    async def load(self) -> None:
        """Reads the notes, those of other processes too. Raises NotConnected when the store is away."""
        try:
            found = await self._checkpoints.load(NOTES + self._tailer)
        except Unavailable as error:
            raise NotConnected(str(error)) from error
        for name, mark in found.items():
            if name not in self._marks or mark.position >= self._marks[name].position:
                self._marks[name] = mark

    def knows(self, name: str) -> bool:
        """Whether there is a note of this name."""
        return name in self._marks

    def life(self, name: str) -> Life:
        """The note of what bears a name; that of a first life where there is none."""
        return self.read(name, Life())

    def named(self, name: str) -> str:
        """The name of the only partition of what bears a name, in its present life."""
        return named(name, self.life(name).name)

    async def meet(self, name: str, now: Life, what: str, why: str = "") -> Life:
        """Meets what bears a name now, and returns its note. Follows the tailer's choice where it is another one than
        the one that is noted: see `another`."""
        known = self.life(name)
        if known.is_another(now.id):
            why = why or "it was deleted and made again, or another one is in its place"
            return await self.another(name, now, f"{what} is another one than the one that was read: {why}")
        if not self.knows(name):
            await self.note(name, now._replace(name=""))
        elif now.id and not known.id:
            await self.note(name, known._replace(id=now.id, place=now.place))
        return self.life(name)

    async def another(self, name: str, now: Life, words: str, how: str = "") -> Life:
        """Follows the tailer's choice for a name that another one bears now, as `words` say. Raises PositionsGone where
        that is to stop (`how`: see `follow`); else notes its life, and returns it."""
        self.follow(f"{words} (now {now.id}, before {self.life(name).id})" if now.id else words, how)
        await self.note(name, self.life(name).next(now, self._choice))
        return self.life(name)

    def follow(self, words: str, how: str = "") -> None:
        """Raises PositionsGone where another one is to stop the tailer; else says that it goes on. `how`: what choices
        but `stop` do, where they do not all mean what they usually do."""
        if self._choice == "stop":
            how = how or ", ".join([f'"on_recreated: {choice}" {HOW[choice]}' for choice in self._choices])
            raise PositionsGone(
                f"{words}. Nothing is passed over without your permission: put the former one back, or say in the file "
                f'of "{self._tailer}", under "source", how to go on: {how}; then start it again'
            )
        log.warning("goes on with another one of the same name", tailer=self._tailer, reason=words)

    def read(self, name: str, default: N) -> N:
        """A note, of the kind of `default`, which is the answer where there is none."""
        mark = self._marks.get(name)
        return default if mark is None else msgspec.json.decode(mark.ahead, type=type(default))

    async def note(self, name: str, note: Any) -> None:
        """Writes a note. Raises NotConnected when the store is away."""
        known = self._marks.get(name)
        mark = Mark(1 if known is None else known.position + 1, msgspec.json.encode(note))
        try:
            await self._checkpoints.open(NOTES + self._tailer, EPOCH)
            await self._checkpoints.commit(NOTES + self._tailer, EPOCH, {name: mark})
        except Unavailable as error:
            raise NotConnected(str(error)) from error
        self._marks[name] = mark
