"""Spooled submissions, taken by gateways while the store was away: each workload arrives once, those of a key in the
order in which they were accepted, and nothing stays. Read from outside of every host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import permutations
from math import inf

from ...stores.queue.ids import id_number
from ...stores.spool.spool import PREFIX
from .client import WorldClient
from .journal import Journal
from .parts import QUEUE
from .plan import Plan
from .sqlite_disk import Disk

_BECAME = "SELECT became FROM left_spool WHERE id = ?"
_LEFT = "SELECT id, reason FROM left_spool WHERE became = ''"


class SpooledAudit:
    """A Guest that checks spools, and the workloads that ids of a spool became. `disks` are those of the gateways, by
    name."""

    def __init__(
        self, plan: Plan, disk: Disk, disks: Mapping[str, Disk], journal: Journal, client: WorldClient
    ) -> None:
        self._plan = plan
        self._disk = disk
        self._disks = disks
        self._journal = journal
        self._client = client

    def pending(self) -> Iterator[str]:
        """Lines about workloads that are still spooled."""
        for name, disk in self._disks.items():
            for (count,) in disk.rows("spool", "SELECT count(*) FROM spooled"):
                if count:
                    yield f"{count} workloads are spooled in {name}"

    def known_as(self, id_: str) -> set[str]:
        """Ids under which the queue has an accepted item: one, unless two gateways' spools gave the same id."""
        if not id_.startswith(PREFIX):
            return {id_}
        number = id_number(id_.removeprefix(PREFIX))
        rows = [row for disk in self._disks.values() for row in disk.rows("spool", _BECAME, (number,))]
        return {became for (became,) in rows if became}

    def made(self) -> Set[str]:
        """Ids of items beside the accepted ones: none, see `known_as`."""
        return frozenset()

    def at_rest(self) -> None:
        """Checks that each workload is in the queue, and those of one key and gateway in the order in which they were
        accepted."""
        numbers = {item.n: self._of_item(item.n) for item in self._plan.items if item.source == QUEUE}
        for n, number in numbers.items():
            if not number:
                told = self._client.accepted[n]
                self._journal.wrong(f"spool: item {n} was accepted as {told}, and the queue does not have it")
        for disk in self._disks.values():
            for number, reason in disk.rows("spool", _LEFT):
                self._journal.wrong(f"spool: {number:016x} left its spool and became nothing: {reason}")
        if len(self._disks) == 1:  # others know nothing of what one has spooled
            for one, other in permutations(self._plan.items, 2):
                if one.key and one.key == other.key and numbers.get(one.n, 0) > numbers.get(other.n, inf):
                    self._not_before(one.n, other.n)

    def _not_before(self, n: int, other: int) -> None:
        """Checks that item `n` was not accepted before item `other` came, which is before it in its key."""
        if self._client.times[n] < self._client.began[other]:
            self._journal.wrong(f"spool: item {other} is before item {n} of its key, which was accepted before it came")

    def _of_item(self, n: int) -> int:
        """The number under which the queue has an item (where two spools gave one id: the one that ran as this item);
        0: it has none."""
        known = self.known_as(self._client.accepted[n])
        if len(known) > 1:
            known = {id_ for id_ in known if id_ in self._journal.stories and self._journal.stories[id_].n == n}
        rows = {number for (number,) in self._disk.rows("queue", "SELECT id FROM tasks")}
        return min((number for id_ in known if (number := int(id_, 16)) in rows), default=0)
