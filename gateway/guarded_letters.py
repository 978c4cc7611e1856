"""Dead letters for callers with rights of their own: those of a filter need a right on all that it leaves open, those
that are named by their ids a right on the function, collection and tenant of each."""

from __future__ import annotations

from dataclasses import replace

from ..model.dead_letter import EVERY, DeadLetter, LetterFilter
from ..model.rights import Need
from ..model.token_calls import need_of
from ..wire.callers import RIGHTS, require
from ..wire.ports.letters import LetterCounts, LetterPage, LetterPort, RedriveStep
from .dead_letters import unknown_letter

#: Letters that are looked up at once.
AT_ONCE = 500


class GuardedLetters:
    """A LetterPort in front of another one."""

    def __init__(self, inner: LetterPort) -> None:
        self._inner = inner

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """Of what the caller may read."""
        return await self._inner.dead_letters(await self._allowed("read", which), limit, after)

    async def dead_letter(self, id: str) -> DeadLetter:
        """One that the caller may read; any other one is not known to it."""
        letter, granted = await self._inner.dead_letter(id), RIGHTS.get()
        if granted is not None and not granted.may(need_of("read", letter.kind)):
            raise unknown_letter(id)
        return letter

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """Of what the caller may read."""
        return await self._inner.count_dead(await self._allowed("read", which))

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Of what the caller may operate."""
        return await self._inner.redrive(await self._allowed("operate", which), limit, after, why, run)

    async def purge(self, which: LetterFilter, limit: int = 1000, why: str = "", run: str = "") -> dict[str, int]:
        """Of what the caller may operate."""
        return await self._inner.purge(await self._allowed("operate", which), limit, why, run)

    async def _allowed(self, action: str, which: LetterFilter) -> LetterFilter:
        """What the caller may act on of that. Letters that it may not read either are not known to it."""
        granted = RIGHTS.get()
        if granted is None:
            return which
        if not which.ids or granted.may(Need(action)):
            require([need_of(action, which)])
            return which
        known: list[DeadLetter] = []
        for begin in range(0, len(which.ids), AT_ONCE):
            some = LetterFilter(ids=which.ids[begin : begin + AT_ONCE])
            known += (await self._inner.dead_letters(some, AT_ONCE)).letters
        known = [each for each in known if any(granted.may(need_of(right, each.kind)) for right in ("read", action))]
        require(need_of(action, each.kind) for each in known)
        if not known:
            raise unknown_letter(which.ids[0])
        return replace(which, ids=tuple(each.id for each in known))
