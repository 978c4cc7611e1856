"""Claims that this process handed out: the items of each that are still leased.

The settlement that ends a claim names it, so that the claim's row is deleted with it. If another process settles the
items, the row goes when its lease ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Most claims that are remembered; the rows of older ones go when their leases end.
REMEMBERED = 10_000


class ClaimsOut:
    """Claim numbers → fences, and ids that are leased. Invariant: an id is in at most one claim."""

    def __init__(self) -> None:
        self._ids: dict[int, set[int]] = {}
        self._fences: dict[int, int] = {}
        self._claim_of: dict[int, int] = {}

    def claimed(self, number: int, fence: int, ids: Iterable[int]) -> None:
        """Notes items that are leased by this claim, and no longer by another."""
        ids = set(ids)
        self._drop(ids)
        self._ids[number], self._fences[number] = ids, fence
        self._claim_of.update(dict.fromkeys(ids, number))
        if len(self._ids) > REMEMBERED:
            self._drop([*self._ids[next(iter(self._ids))]])

    def over_with(self, fence: int, ids: Iterable[int]) -> list[int]:
        """The claims under this fence that have no leased item left once these are settled."""
        settled: dict[int, int] = {}
        for each in set(ids):
            number = self._claim_of.get(each)
            if number is not None and self._fences[number] == fence:
                settled[number] = settled.get(number, 0) + 1
        return [number for number, count in settled.items() if count == len(self._ids[number])]

    def renewed(self, number: int, fence: int, ids: Sequence[int]) -> None:
        """Notes items that were renewed. If their claim is a new one, they were renewed apart from the rest of the
        former one."""
        if number not in self._ids and any(each in self._claim_of for each in ids):
            self.claimed(number, fence, ids)

    def ended(self, fence: int, ids: Iterable[int]) -> None:
        """Notes items that are not leased under the fence any more."""
        self._drop([each for each in ids if self._fences.get(self._claim_of.get(each, -1)) == fence])

    def _drop(self, ids: Iterable[int]) -> None:
        for each in ids:
            number = self._claim_of.pop(each, None)
            if number is None:
                continue
            out = self._ids[number]
            out.discard(each)
            if not out:
                del self._ids[number], self._fences[number]
