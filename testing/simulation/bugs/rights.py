"""Mistakes that need not show by two runs at once: in each link of the chain of leases, in sizes, sessions and epochs,
in rows of the ledger, in leftovers."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

from ....model import lease
from ....runtime.deadman import Deadman
from ....runtime.frames import Timer
from ....scheduler import core as core_
from ....stores.checkpoints import sqlite as checkpoints_
from ....stores.ledger import sqlite as ledger_
from ....stores.ledger.sqlite import SqliteLedger
from ....stores.queue.sqlite import settle as sqlite_settle
from ....tailers import session as session_
from ....tailers.pumps import copy_starter as copy_starter_
from ....tailers.rules import ledger as rules
from ....tailers.rules.credit import Credit
from ....tailers.takeover import epoch as epoch_
from ....tailers.takeover.epoch import Epoch
from ....wire.session import Dialer
from ..executor import SimExecutor
from ..host import here
from ..kernel import Kernel
from ..planting import Bug, breaks, bug, instead


@breaks("L7", by="beyond its lease")
def _the_timer_rings_a_second_late() -> Bug:
    """Adds a second to the timer, less than its margin: two at once would need more."""
    admit, renewed = Deadman.admit, Deadman.renewed
    stack = contextlib.ExitStack()
    stack.enter_context(
        instead(Deadman, "admit", lambda self, number, deadline, count: admit(self, number, deadline + 1.0, count))
    )
    stack.enter_context(
        instead(Deadman, "renewed", lambda self, number, deadline: renewed(self, number, deadline and deadline + 1.0))
    )
    return stack


@breaks("L6", by="beyond its lease")
def _deadlines_in_a_host_travel_as_durations() -> Bug:
    real = Kernel.accept

    def set_timer(self: SimExecutor, deadline: float) -> None:
        self.timer = deadline
        left = deadline and deadline - here().clock.monotonic()
        self.kernel.later(0.001, self.kernel.accept, Timer(self.covered, left))

    def accept(self: Kernel, frame: Any) -> None:
        if isinstance(frame, Timer) and frame.deadline:
            frame.deadline += self.clock()
        real(self, frame)

    stack = contextlib.ExitStack()
    stack.enter_context(instead(SimExecutor, "set_timer", set_timer))
    stack.enter_context(instead(Kernel, "accept", accept))
    return stack


@breaks("L1", by="granted")
def _a_scheduler_is_granted_a_little_more() -> Bug:
    return instead(
        session_, "grant_to_scheduler", lambda sizes, held: min(sizes.scheduler, held + 2.0) if held else 0.0
    )


@breaks("L2", by="unexplained")
def _a_lease_is_shorter_than_a_heartbeat() -> Bug:
    """Starts items all the same."""
    stack = contextlib.ExitStack()
    stack.enter_context(instead(lease.LeaseSizes, "worker", 4.0))
    stack.enter_context(instead(core_, "is_enough_to_start", lambda sizes, held: held > 0))
    return stack


@breaks("L3", by="unexplained")
def _a_connection_that_breaks_ends_its_session() -> Bug:
    real = Dialer._connect

    async def connect(self: Dialer) -> Any:
        if self._known:
            self._forget()
        return await real(self)

    return instead(Dialer, "_connect", connect)


@breaks("L10", by="resumed")
def _an_epoch_is_resumed_after_its_lease() -> Bug:
    return instead(epoch_, "lapsed", lambda held_until, sent: False)


@breaks("L11", by="older")
def _the_ledger_takes_what_an_older_epoch_writes() -> Bug:
    real = SqliteLedger.write

    async def write(self: SqliteLedger, source: str, partition: str, changes: Any, epoch: int | None) -> Any:
        head = await self._file.read(lambda connection: ledger_._head(connection, source, partition))
        return await real(self, source, partition, changes, head[0] if epoch is not None and head else epoch)

    return instead(SqliteLedger, "write", write)


@breaks("L13", by="the checkpoint")
def _a_checkpoint_goes_back_with_a_late_write() -> Bug:
    real: Any = vars(checkpoints_)["insert"]

    def insert(connection: Any, table: str, rows: Any, **options: Any) -> None:
        if table == "checkpoint_marks":
            options["behind"] = options["behind"].partition(" WHERE")[0]
        real(connection, table, rows, **options)

    return instead(checkpoints_, "insert", insert)


@breaks("L17", by="two at once")
def _a_running_row_names_no_epoch() -> Bug:
    real = rules.starts

    def starts(*args: Any) -> Any:
        plan = real(*args)
        return plan._replace(start={at: (was, row._replace(epoch=0)) for at, (was, row) in plan.start.items()})

    return instead(copy_starter_, "starts", starts)


@bug
def _an_owner_begins_before_its_checkpoint() -> Bug:
    real = Epoch.take

    async def take(self: Epoch, adopt: Any = None) -> Any:
        marks = await real(self, adopt)
        return {name: mark._replace(position=max(0, mark.position - 2)) for name, mark in marks.items()}

    return instead(Epoch, "take", take)


@breaks("L20", by="the checkpoint")
def _a_row_that_is_over_and_passed_stays() -> Bug:
    return instead(ledger_, "_REMOVE", ledger_._REMOVE.replace("WHERE", "WHERE 0 AND"))


@breaks("L13", by="ledger")
def _a_row_is_made_below_the_checkpoint() -> Bug:
    real = ledger_._as_read
    return instead(ledger_, "_as_read", lambda connection, where, moves, passed: real(connection, where, moves, 0))


@breaks("L19", by="ledger")
def _a_copys_fence_is_the_next_of_its_epoch() -> Bug:
    """Ignores the fence in the row of the copy. The rule and the ledger, which would both refuse that, ask for no
    more."""
    real, real_running = Epoch.next_fence, rules.running
    stack = contextlib.ExitStack()
    stack.enter_context(instead(Epoch, "next_fence", lambda self, above=0: real(self)))
    stack.enter_context(instead(rules, "running", lambda row, *rest: real_running(row._replace(fence=-1), *rest)))
    stack.enter_context(instead(ledger_, "refusal", lambda before, after, owner: ""))
    return stack


@bug
def _one_item_of_credit_is_not_given_back() -> Bug:
    real = Credit.give
    kept: list[Credit] = []

    def give(self: Credit, counts: Any, *more: Any) -> None:
        if self not in kept:
            kept.append(self)
            counts = Counter(counts) - Counter({next(iter(counts)): 1})
        real(self, counts, *more)

    return instead(Credit, "give", give)


@bug
def _what_is_to_be_cancelled_is_tried_again() -> Bug:
    return instead(sqlite_settle, "CANCEL", 0)
