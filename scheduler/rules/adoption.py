"""Adoption: whose pushes count under a row of ownership, while another owner may be taking it (LEASES L12).

A scheduler never reads the row; it knows what it was shown of it. Whoever wants the row asks about the version that it
read; from then on nothing of that epoch counts, until a newer version is shown. The row itself decides who that is: the
taker's compare-and-set and the owner's renewal cannot both follow the version that was asked about. So either the taker
comes back with its new epoch, or the owner with the same one, never both.
"""

from __future__ import annotations


class Row:
    """What one scheduler knows of a row.

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
        """Somebody who read this version wants the row. False: a newer one was shown, its compare-and-set will fail."""
        if version < self.version:
            return False
        self.asked = max(self.asked, version)
        return True

    def show(self, epoch: int, version: int) -> bool:
        """An owner shows the row. False: that version is not newer than one shown before, so it says nothing."""
        if version <= self.version:
            return False
        self.version, self.epoch = version, epoch
        return True
