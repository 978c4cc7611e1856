"""The lives of a place: a folder or a bucket that was deleted and made again under its name is another one.

A note beside the tailer's checkpoints has the birth of the place that is read, where it can be known. Each further life
has positions, an inventory and a checkpoint of its own.
"""

from __future__ import annotations

from typing import Literal

from ...foundation.logger import Logger
from ...model.errors import NotConnected, PositionsGone, Unavailable
from ...stores.checkpoints.checkpoints import Checkpoints, Mark

#: The notes are kept under this name and the tailer's, always with one epoch: a life is noted by its first reader.
NOTES = "@lives."
EPOCH = 1
#: How a tailer goes on with a place that is another one.
PlaceChoice = Literal["stop", "from_start"]

log = Logger("tailrace.tailer")


class PlaceLives:
    """The lives of one tailer's place. `where` names it for people."""

    def __init__(self, checkpoints: Checkpoints, tailer: str, where: str, choice: PlaceChoice) -> None:
        self._checkpoints = checkpoints
        self._tailer = tailer
        self._where = where
        self._choice = choice

    async def now(self, place: str) -> str:
        """The name of the life that is noted of a place. Raises NotConnected when the store is away."""
        return _named(place, await self._noted(place))

    async def meet(self, place: str, birth: str) -> str:
        """Meets a place with its birth (empty: not known), and names its life. Raises PositionsGone when it is another
        place than the one that is noted and the tailer is to stop there; NotConnected when the store is away."""
        noted = await self._noted(place)
        if not birth or (noted is not None and noted.ahead == birth.encode()):
            return _named(place, noted)
        if noted is not None:
            words = (
                f"{self._where} is another one than the one that was read: it was deleted and made again, or another "
                f"one is mounted in its place (it was made at {birth}, the one before at {noted.ahead.decode()})"
            )
            if self._choice == "stop":
                raise PositionsGone(
                    f"{words}. Nothing is passed over without your permission: bring the former one back, or say in "
                    f'the file of "{self._tailer}", under "source", "on_recreated: from_start", which reads all that '
                    "is there now; then start it again"
                )
            log.warning("goes on with another place of the same name", tailer=self._tailer, reason=words)
        return _named(place, await self._note(place, 1 if noted is None else noted.position + 1, birth))

    async def _noted(self, place: str) -> Mark | None:
        try:
            return (await self._checkpoints.load(NOTES + self._tailer)).get(place)
        except Unavailable as error:
            raise NotConnected(str(error)) from error

    async def _note(self, place: str, life: int, birth: str) -> Mark:
        mark = Mark(life, birth.encode())
        try:
            await self._checkpoints.open(NOTES + self._tailer, EPOCH)
            await self._checkpoints.commit(NOTES + self._tailer, EPOCH, {place: mark})
        except Unavailable as error:
            raise NotConnected(str(error)) from error
        return mark


def _named(place: str, noted: Mark | None) -> str:
    return place if noted is None or noted.position == 1 else f"{place}-{noted.position}"
