"""Authorization of calls about dead letters: a filter needs a right to everything that it leaves open, ids need a right
to the function, collection and tenant of each letter. Callers without rights of their own pass."""

from __future__ import annotations

from dataclasses import replace

from ..model.dead_letter import EVERY, DeadLetter, LetterFilter
from ..model.rights import Need
from ..model.token_calls import need_of
from ..wire.callers import RIGHTS, require
from ..wire.ports.letters import LetterCounts, LetterPage, LetterPort, RedriveStep
from .dead_letters import unknown_letter

#: Letters that are looked up in one call.
AT_ONCE = 500


class GuardedLetters:
    """Checks the caller's rights to a call about dead letters, then makes it (a LetterPort)."""

    def __init__(self, inner: LetterPort) -> None:
        self._inner = inner

    async def dead_letters(self, which: LetterFilter = EVERY, limit: int = 100, after: int = 0) -> LetterPage:
        """Needs `read` for the filter."""
        return await self._inner.dead_letters(await self._allowed("read", which), limit, after)

    async def dead_letter(self, id: str) -> DeadLetter:
        """A letter that the caller may read; any other is answered as unknown."""
        letter, granted = await self._inner.dead_letter(id), RIGHTS.get()
        if granted is not None and not granted.may(need_of("read", letter.kind)):
            raise unknown_letter(id)
        return letter

    async def count_dead(self, which: LetterFilter = EVERY) -> LetterCounts:
        """Needs `read` for the filter."""
        return await self._inner.count_dead(await self._allowed("read", which))

    async def redrive(
        self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "", run: str = ""
    ) -> RedriveStep:
        """Needs `operate` for the filter."""
        return await self._inner.redrive(await self._allowed("operate", which), limit, after, why, run)

    async def purge(self, which: LetterFilter, limit: int = 1000, why: str = "", run: str = "") -> dict[str, int]:
        """Needs `operate` for the filter."""
        return await self._inner.purge(await self._allowed("operate", which), limit, why, run)

    async def _allowed(self, action: str, which: LetterFilter) -> LetterFilter:
        """The filter, checked. Ids of letters that the caller may not read are left out, as unknown to it."""
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
