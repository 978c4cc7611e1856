"""Heights of a store (high-water marks), told to it by those who saw them (model/height.py): schedulers, through
tailers."""

from __future__ import annotations

from typing import Protocol

from ..model.height import Height

#: What is asked about: the queue, whose fences they are, and the state, whose rows of ownership they are.
QUEUE, STATE = "queue", "state"


class Heights(Protocol):
    """Of the stores that are served together. A store on a server looks after itself, and is not among them."""

    async def name(self, store: str) -> str:
        """The random name of the database that `store` rests in; empty: it is not among them."""

    async def seen(self, store: str, remembered: Height) -> bool:
        """Somebody saw it as high as that. Whether it was set back since: then it hands nothing out for the lease of a
        source from now on, and whatever it gives afterwards is above that."""


__all__ = ["QUEUE", "STATE", "Height", "Heights"]
