"""Heights (high-water marks) of the stores on a node, told to it by processes that saw higher numbers: schedulers,
through tailers (model/height.py)."""

from __future__ import annotations

from typing import Protocol

from ..model.height import Height

#: Stores that have a height: the queue, by its fences, and the state, by the versions of its rows of ownership.
QUEUE, STATE = "queue", "state"


class Heights(Protocol):
    """Heights of the stores that a node serves together. A store on a database server checks itself, and is not among
    them."""

    async def name(self, store: str) -> str:
        """The random name of the database of `store`; empty: the store is not among them."""

    async def seen(self, store: str, remembered: Height) -> bool:
        """Tells that some process saw `store` as high as `remembered`. Returns whether the store was set back since:
        then it hands nothing out for the lease of a source from now on, and the numbers that it gives afterwards are
        above that height."""


__all__ = ["QUEUE", "STATE", "Height", "Heights"]
