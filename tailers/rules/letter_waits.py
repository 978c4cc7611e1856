"""Items whose dead letters find no room: THE rule of how long they wait in their source, and which go on first.

No letter is dropped, so such an item is not over: it stays where it is, and runs again later. That costs no attempt and
counts no crash, since nothing new is found out about it. It goes on as soon as there is room, which its tailer asks for
while some wait; the pause is for those that nobody remembers (their tailer died, or there are too many), and for items
whose function was mended meanwhile. It grows with their number, so that of a room one runs in two seconds.

    items of the room that wait   up to 7   100       1,800 and more
    pause                         15 s      200 s     1 h
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from itertools import islice
from typing import TypeVar

from ...model.outcome import Outcome

#: Seconds from one run to the next of the items of a room, and the least and the longest pause of one.
PACE, LEAST, LONGEST = 2.0, 15.0, 3600.0
#: Items remembered; beyond that, the one that came first is forgotten, and goes on after its pause.
REMEMBERED = 100_000
#: Seconds between two looks for room, rooms of one look, and items of one room that go on after it.
LOOK, ROOMS, AT_ONCE = 1.0, 500, 500

#: The function and the tenant of a room.
RoomName = tuple[str, str]
K = TypeVar("K", bound=Hashable)


class LetterWaits(dict[K, tuple[RoomName, float]]):
    """Items of one tailer that failed for good and wait: the room of each, and the end of its pause (monotonic).

    Invariant: `_rooms` has each item in its room, in the order in which they came, and no empty room.
    """

    __slots__ = ("_rooms",)

    def __init__(self) -> None:
        super().__init__()
        self._rooms: dict[RoomName, dict[K, None]] = {}

    def came(self, item: K, room: RoomName, now: float) -> float:
        """Notes at `now`, monotonic, that an item found no room. Returns its pause, seconds."""
        self.over((item,))
        if len(self) >= REMEMBERED:
            self.over((next(iter(self)),))
        items = self._rooms.setdefault(room, {})
        items[item] = None
        pause = min(LONGEST, max(LEAST, len(items) * PACE))
        self[item] = room, now + pause
        return pause

    def over(self, items: Collection[K]) -> None:
        """Forgets items that ended otherwise."""
        for item in items if self else ():
            if (waits := self.pop(item, None)) is not None:
                room, _ = waits
                del self._rooms[room][item]
                if not self._rooms[room]:
                    del self._rooms[room]

    def asked(self) -> list[RoomName]:
        """The rooms that are to be looked at now: all of them in turns."""
        rooms = [*islice(self._rooms, ROOMS)]
        for room in rooms:
            self._rooms[room] = self._rooms.pop(room)
        return rooms

    def free(self, room: RoomName, left: int) -> list[K]:
        """Takes the items that go on, since a room has so many places left; the first that came go first."""
        items = [*islice(self._rooms.get(room, ()), max(0, min(left, AT_ONCE)))]
        self.over(items)
        return items

    def waiting(self, now: float) -> int:
        """Number of items that wait for the end of their pause."""
        return sum([until > now for _, until in self.values()])

    @property
    def why(self) -> str:
        """The reason why items wait, for people."""
        function, tenant = next(iter(self._rooms), ("", ""))
        of = f" of the tenant {tenant!r}" if tenant else ""
        return f"{function} has as many dead letters{of} as are kept (`max_dead_letters`)"


def uncharged(outcome: str, failed: int, crashes: int) -> tuple[int, int]:
    """The failed attempts and crashes of an item before an `outcome` by which it would die with these numbers. One
    whose process died keeps one crash at least, so that it runs alone."""
    if outcome == Outcome.LOST.name.lower():
        return failed, max(1, crashes - 1)
    return max(0, failed - 1), crashes
