"""Writes that the stores let somebody make, as the world hears them: an older fence or epoch writes nothing; a row of
the ledger goes its way and never back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...assembly.embedded import EmbeddedStores
from ...delay_service.leadership import SOURCE as MOVERS
from ...model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from ...stores.queue.ids import id_number
from .host import Host
from .journal import ROUNDING, Journal
from .sqlite_disk import Disk

_FENCES = "SELECT id, fence FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
_EPOCHS = {
    "checkpoint": "SELECT epoch FROM checkpoint_sources WHERE source = ?1 AND ?2 IS NOT NULL",
    "ledger": "SELECT epoch FROM ledger_heads WHERE source = ? AND partition = ?",
}
_HEADS = "SELECT source, partition, passed FROM ledger_heads"
_ROWS = "SELECT source, partition, entry FROM ledger"

_entry = msgspec.json.Decoder(LedgerEntry).decode
_encode = msgspec.json.Encoder().encode


class Writes:
    """Listens to the stores of each process that opens them (`hear`), and looks at the ledger after each commit.
    `over` says of an id whether it was done or buried at some time; `claimed` is told of each lease of the queue."""

    def __init__(
        self, disk: Disk, journal: Journal, over: Callable[[str], bool], claimed: Callable[[int, float], None]
    ) -> None:
        self._disk = disk
        self._journal = journal
        self._over = over
        self._claimed = claimed
        self._passed: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[str, str, int], tuple[str, LedgerEntry]] = {}
        self._read: dict[str, LedgerEntry] = {}

    # ---- as they are asked

    def hear(self, stores: EmbeddedStores) -> None:
        """Listens to the calls of these stores, and to their answers."""
        queue: Any = stores.queue
        for verb, heard in (("lease", self._lease), ("renew", self._renew), ("settle", self._settle)):
            _through(queue, verb, heard)
        _through(stores.checkpoints, "commit", self._commit)
        _through(stores.ledger, "write", self._write)

    def hear_owner(self, ownership: Any, host: Host) -> None:
        """Listens to requests of an owner for its rows, and checks that it makes none for an epoch whose lease was over
        (L10)."""
        asked: dict[tuple[str, str, int], float] = {}

        async def take(real: Any, source: str, partition: str, *more: Any) -> Any:
            sent = host.world.now
            row = await real(source, partition, *more)
            if row is not None:
                asked[source, partition, row.epoch] = sent
            return row

        async def renew(real: Any, source: str, partition: str, epoch: int, *more: Any) -> Any:
            sent = host.world.now
            row = await real(source, partition, epoch, *more)
            if row is None:
                return None
            ends = asked.get((source, partition, epoch), sent) + row.lease / host.clock.rate
            if sent > ends + ROUNDING and source != MOVERS:  # what a mover does may be done twice: it only takes turns
                self._journal.wrong(
                    f"resumed: {host.name} renews epoch {epoch} of {source} {sent - ends:.3f} s too late"
                )
            asked[source, partition, epoch] = sent
            return row

        _through(ownership, "take", take)
        _through(ownership, "renew", renew)

    async def _lease(self, real: Any, *asked: Any, **named: Any) -> Any:
        leased = await real(*asked, **named)
        if leased is not None:
            self._claimed(leased.fence, leased.lease)
        return leased

    async def _renew(self, real: Any, ids: Any, fence: int, *asked: Any, **named: Any) -> Any:
        renewed = await real(ids, fence, *asked, **named)
        if len(renewed.lost) < len(ids):
            self._claimed(fence, renewed.lease)
        return renewed

    async def _settle(self, real: Any, fence: int, succeeded: Any, others: Any) -> Any:
        ids = [*succeeded, *(each.id for each in others)]
        numbers = [id_number(id_) for id_ in ids]
        newest = dict(self._disk.rows("queue", _FENCES, (_encode(numbers).decode(),)))
        refused = set(await real(fence, succeeded, others))
        for id_, number in zip(ids, numbers, strict=True):
            if newest.get(number, 0) > fence and id_ not in refused:
                self._journal.wrong(f"older: {id_} was settled under {fence} after a hand-out under {newest[number]}")
        return list(refused)

    async def _commit(self, real: Any, source: str, epoch: int, marks: Any) -> Any:
        before = self._newest("checkpoint", source, "")
        await real(source, epoch, marks)
        self._current("checkpoint", source, epoch, before)

    async def _write(self, real: Any, source: str, partition: str, changes: Any, epoch: int | None) -> Any:
        before = self._newest("ledger", source, partition)
        answer = await real(source, partition, changes, epoch)
        if epoch is not None and changes:
            self._current("ledger", source, epoch, before)
        return answer

    def _newest(self, what: str, source: str, partition: str) -> int:
        rows = self._disk.rows("state", _EPOCHS[what], (source, partition))
        return int(rows[0][0]) if rows else 0

    def _current(self, what: str, source: str, epoch: int, newest: int) -> None:
        if newest > epoch:
            self._journal.wrong(f"older: the {what} of {source} took a write of epoch {epoch} after {newest}")

    # ---- after each commit

    def committed(self, file: str) -> None:
        """Checks that each row of the ledger went forward, none was made below the checkpoint, and none went before its
        time."""
        if file != "state":
            return
        rows = {}
        for source, partition, text in self._disk.rows("state", _ROWS):
            entry = self._read.get(text) or _entry(text)
            rows[source, partition, entry.position] = (text, entry)
        for key, (text, entry) in rows.items():
            before = self._known.get(key)
            if before is None:
                if entry.position < self._passed.get(key[:2], 0):
                    self._wrong(key, f"was made below {self._passed[key[:2]]}, which its checkpoint had passed")
            elif before[0] != text:
                self._moved(key, before[1], entry)
        passed = {(source, partition): passed for source, partition, passed in self._disk.rows("state", _HEADS)}
        for key, (_, entry) in self._known.items():
            if key in rows:
                continue
            if entry.place not in (*TERMINAL, LedgerPlace.SUSPECT) and not self._over(_id(key)):
                self._wrong(key, f"is gone, which was {entry.place.label}, and its item is not over")
            elif entry.position >= passed.get(key[:2], 0):
                self._wrong(key, f"is gone, and its checkpoint was at {passed.get(key[:2], 0)} when that was last told")
        self._known = rows
        self._read = dict(rows.values())
        self._passed = passed

    def _moved(self, key: tuple[str, str, int], before: LedgerEntry, after: LedgerEntry) -> None:
        if after.fence < before.fence or after.n < before.n:
            self._wrong(key, f"went back from {before} to {after}")
        elif before.place in TERMINAL and after.place is not before.place:
            self._wrong(key, f"was {before.place.label} and is {after.place.label}")
        elif (
            after.place is LedgerPlace.RUNNING
            and after.fence <= before.fence
            and before.place is not LedgerPlace.RUNNING
        ):
            self._wrong(key, f"runs under {after.fence}, not above {before.fence}")

    def _wrong(self, key: tuple[str, str, int], what: str) -> None:
        self._journal.wrong(f"ledger: the row of {_id(key)} {what}")

    def restored(self) -> None:
        """Forgets all rows: the files were put back."""
        self._known, self._passed = {}, {}


def _id(key: tuple[str, str, int]) -> str:
    return "/".join(map(str, key))


def _through(owner: Any, verb: str, heard: Callable[..., Any]) -> None:
    """Has calls of an object's method go through a listener."""
    real = getattr(owner, verb)

    async def call(*asked: Any, **named: Any) -> Any:
        return await heard(real, *asked, **named)

    setattr(owner, verb, call)
