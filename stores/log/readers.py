"""The tailers that read the platform's log, and what of it they have not settled: no retention takes that from a known
tailer. A tailer is known from its first start until somebody forgets it.

The checkpoints know how far a tailer is, and not what it reads; so that is noted there as well, under a source of its
own whose partitions are the pairs of tailer and stream. A note's position only rises, so that of two that are written
at once the later one stays; it is odd while the tailer is known, and even when it was forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..checkpoints.checkpoints import Checkpoints, Mark
from ..checkpoints.lives import Lives

#: The source of the notes, which no tailer can be named, and its epoch: nobody owns it.
NOTES: Final = "readers of the log/"
_EPOCH: Final = 1
#: A character that no name of a tailer has.
SEPARATOR: Final = "\n"


class KnownTailer(NamedTuple):
    """A known tailer of a stream, and the position of each partition below which it has settled all; a partition that
    it has no checkpoint of is needed whole."""

    tailer: str
    stream: str
    settled: Mapping[int, int]


class LogReaders:
    """The known tailers of the log, over the checkpoints of the same platform."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints

    async def known(self) -> dict[str, str]:
        """The stream of each known tailer."""
        return dict(pair for pair, position in (await self._notes()).items() if position % 2)

    async def _notes(self) -> dict[tuple[str, str], int]:
        """The position of each note, by tailer and stream."""
        notes = await self._checkpoints.load(NOTES)
        return {_pair(name): mark.position for name, mark in notes.items()}

    async def note(self, tailer: str, stream: str) -> None:
        """Notes that a tailer reads this stream from now on, and no other one. Harmless when it is known."""
        notes = await self._notes()
        changed = {
            pair: notes.get(pair, 0) + 1
            for pair in {(tailer, stream), *notes}
            if pair[0] == tailer and (notes.get(pair, 0) % 2 == 1) != (pair[1] == stream)
        }
        await self._put(changed)

    async def forget(self, tailer: str) -> str:
        """Forgets that a tailer reads the log, and returns its stream; empty: it is not known."""
        stream = (await self.known()).get(tailer, "")
        if stream:
            await self._put({(tailer, stream): (await self._notes())[tailer, stream] + 1})
        return stream

    async def _put(self, notes: Mapping[tuple[str, str], int]) -> None:
        if notes:
            marks = {SEPARATOR.join(pair): Mark(position) for pair, position in notes.items()}
            await self._checkpoints.open(NOTES, _EPOCH)
            await self._checkpoints.commit(NOTES, _EPOCH, marks)

    async def readers(self, life: str = "") -> list[KnownTailer]:
        """The known tailers, and how far each is in the log that has the sign `life`: nowhere, where it has read
        another one of the same name."""
        found = []
        for tailer, stream in (await self.known()).items():
            lives = Lives(self._checkpoints, tailer)
            await lives.load()
            noted = lives.life(stream)
            marks = {} if noted.is_another(life) else await self._checkpoints.load(tailer)
            settled = {int(plain): mark.position for name, mark in marks.items() if (plain := noted.plain(name))}
            found.append(KnownTailer(tailer, stream, settled))
        return found


def _pair(name: str) -> tuple[str, str]:
    tailer, _, stream = name.partition(SEPARATOR)
    return tailer, stream
