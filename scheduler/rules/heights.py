"""Heights of stores (high-water marks), as a scheduler remembers them (model/height.py): a store that is set back
hears of it when its tailers come again. A scheduler that was started since knows nothing.
"""

from __future__ import annotations

from ...model.height import forgettable
from .adoption import plausible

#: The longest name of a store.
NAME = 64


class SeenHeights:
    """Stores by their random names, and how high. Invariant: no more than MOST of them, heard of in the last KEPT
    seconds when the last new one came."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}
        self._told_at: dict[str, float] = {}

    def highest(self, store: str) -> int:
        """The highest fence or version seen of a store; 0: nothing is known of it."""
        return self._highest.get(store, 0)

    def saw(self, store: str, highest: int, now: float, wall: float) -> None:
        """Notes a fence, or a version of a row, that a tailer had from the store. A height that no store can have given
        yet, by the wall clock, is not believed: it would make the store hold off for nothing."""
        known = self._highest.get(store, 0)
        if len(store) > NAME or not plausible(highest, known, wall):
            return
        new = store not in self._highest
        self._highest[store] = max(known, highest)
        self._told_at[store] = now
        if new:
            for each in forgettable(self._told_at, now):
                del self._highest[each], self._told_at[each]
