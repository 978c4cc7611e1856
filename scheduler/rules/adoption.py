"""Adoption (hand-over of running work): the owner whose pushes count under a row of ownership, while another owner may
be taking it (L12).

A scheduler never reads the row; it knows the versions that it was shown. A tailer that wants the row asks about the
version that it read; from then on nothing of that epoch counts, until a newer version is shown. The row itself decides
who that is: the taker's compare-and-set and the owner's renewal cannot both follow the version that was asked about. So
either the taker comes back with its new epoch, or the owner with the same one, never both.
"""

from __future__ import annotations

from typing import Final

#: A store's versions are the microseconds of its clock, or one more than the version before. Nobody can have read one
#: that is later by more than so many seconds than this scheduler's clock and than all that it was shown.
AHEAD: Final = 600.0
#: No version is beyond this, whatever a clock says: the year 2255.
LARGEST: Final = 1 << 53


def plausible(version: int, shown: int, wall: float) -> bool:
    """Whether somebody may have read this version of a row of which `shown` is the newest that was shown. A made-up one
    would bar its owner until its versions are past it. A tailer that is refused for a clock that is far off waits for
    the owner's lease instead."""
    return 0 <= version <= min(LARGEST, max(shown, int(wall * 1e6)) + int(AHEAD * 1e6))


def forgettable(idle: float, source_lease: float) -> bool:
    """Whether a row may be forgotten here, after `idle` seconds in which no session that showed it was there, nothing
    ran under it, and nobody asked. By then the sessions of before are forgotten, and so are their messages; an owner
    that comes in a new one has to show a newer version first, which ends the claim of a taker that read an older
    one."""
    return idle >= 2 * source_lease


class AdoptedRow:
    """A row of ownership, as one scheduler knows it.

    version  the newest version that was shown; 0: none
    epoch    that version's
    asked    the newest version that somebody asked about and was confirmed; 0: none

    Invariant: `version` and `asked` never go back, so an epoch that gave way to a newer one never counts again.
    """

    __slots__ = ("asked", "epoch", "version")

    def __init__(self) -> None:
        self.version = 0
        self.epoch = 0
        self.asked = 0

    @property
    def barred(self) -> bool:
        """Whether the epoch that was shown does not count for now."""
        return self.asked >= self.version

    def allows(self, epoch: int) -> bool:
        """Whether pushes and renewals of an epoch count."""
        return epoch == self.epoch and not self.barred

    def ask(self, version: int) -> bool:
        """Takes the question of a tailer that read this version and wants the row. False: a newer one was shown, so its
        compare-and-set will fail."""
        if version < self.version:
            return False
        self.asked = max(self.asked, version)
        return True

    def show(self, epoch: int, version: int) -> bool:
        """Takes the row that an owner shows. False: that version is not newer than one shown before, so it says
        nothing."""
        if not self.version < version <= LARGEST:
            return False
        self.version, self.epoch = version, epoch
        return True
