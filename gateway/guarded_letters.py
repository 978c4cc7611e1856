"""Dead letters by their ids, of whoever has rights of its own: each is held against the function, collection and tenant
of the letter. Letters by a filter are held against that before (`guarded.py`)."""

from __future__ import annotations

from ..model.dead_letter import DeadLetter
from ..model.token_calls import need_of
from ..wire.callers import RIGHTS
from ..wire.ports.letters import LetterPort
from .dead_letters import unknown_letter


class GuardedLetters:
    """A LetterPort in front of another one."""

    def __init__(self, inner: LetterPort) -> None:
        self._inner = inner
        self.dead_letters, self.count_dead = inner.dead_letters, inner.count_dead
        self.redrive, self.purge = inner.redrive, inner.purge

    async def dead_letter(self, id: str) -> DeadLetter:
        """One that the caller may read; any other one is not known to it."""
        letter, granted = await self._inner.dead_letter(id), RIGHTS.get()
        if granted is not None and not granted.may(need_of("read", letter.kind)):
            raise unknown_letter(id)
        return letter
