"""Progress notes of an executor's runs: the latest of each, sent together every tenth of a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .board import Board
from .frames import Notes

#: Seconds between two frames of progress notes.
NOTES_EVERY = 0.1


class Notebook:
    """The notes that were not sent yet. `alone`: its process runs one item at a time, whose note outlives it on the
    board. `take` is called on the loop, `from_thread` on other threads."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, board: Board, send: Callable[[Any], None], *, alone: bool
    ) -> None:
        self._loop = loop
        self._board = board
        self._send = send
        self._alone = alone
        self._notes: dict[int, str] = {}

    def take(self, key: int, note: str) -> None:
        """Records a note; on the loop."""
        if self._alone:
            self._board.write_note(key, note)
        if not self._notes:
            self._loop.call_later(NOTES_EVERY, self._flush)
        self._notes[key] = note

    def from_thread(self, key: int, note: str) -> None:
        """Records a note; on a function's thread."""
        if self._alone:
            self._board.write_note(key, note)
        self._loop.call_soon_threadsafe(self.take, key, note)

    def _flush(self) -> None:
        notes, self._notes = self._notes, {}
        self._send(Notes(list(notes.items())))
