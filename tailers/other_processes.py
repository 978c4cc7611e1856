"""The other processes of a fleet that run tailers, as one process sees them at each of its reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..model.member import FleetMember, tailers_of
from .rules.fleet_placement import BetterPlace, StandingMember, better_places

#: States in which a tailer may be where it belongs.
ABLE = ("starting", "running", "clogged")


class OtherProcesses:
    """All processes with tailers but the one with this id. Invariant: `_since` has the processes of the last look, each
    with the time at which it was first seen."""

    def __init__(self, id: str, place: str) -> None:
        self._id, self._place = id, place
        self._since: dict[str, float] = {}

    def look(self, tailers: Collection[str], members: Sequence[FleetMember], now: float) -> Mapping[str, BetterPlace]:
        """The better place of each of the `tailers`, which run here, that belongs to another process."""
        others = [each for each in members if each.id != self._id]
        self._since = {each.id: self._since.get(each.id, now) for each in others}
        standing = [
            StandingMember(
                each.id,
                each.place,
                frozenset(told.name for told in tailers_of(each) if told.state in ABLE),
                self._since[each.id],
            )
            for each in others
        ]
        return better_places(StandingMember(self._id, self._place, frozenset(tailers), now), standing, now)
