"""The moves of the ledger: tables for single moves, and a state machine in which owners and copies race and die."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.model.ledger import NOT_YET, TERMINAL, LedgerEntry, LedgerPlace
from tailrace.tailers.rules.ledger import (
    SOON,
    CopyVerdict,
    Due,
    Find,
    Next,
    after_parking,
    copy_finds,
    detached,
    found,
    history,
    is_marked,
    is_soon,
    is_suspect,
    knows_end,
    parking,
    running,
    starts,
    suspect,
    throttled,
)
from tailrace.tailers.rules.settlement import Action, History, Settlement

EPOCH = 5
NOW = 100.0
#: Rows whose item is never run from its source (L15).
AWAY = set(LedgerPlace) - {LedgerPlace.SUSPECT}


def row(place, n=1, epoch=0, **more):
    return LedgerEntry(7, place, n=n, epoch=epoch, **more)


def failed(attempts=1, crashes=0):
    return Settlement(Action.PARK, 1.0, attempts, crashes, 0, "no")


def test_only_items_without_a_row_or_with_a_mark_run_from_their_source():
    assert found(None) is Find.RUN
    assert found(row(LedgerPlace.SUSPECT)) is Find.ALONE
    assert found(row(LedgerPlace.PARKING)) is Find.APPEND
    assert {found(row(place)) for place in AWAY - {LedgerPlace.PARKING}} == {Find.SKIP}


@pytest.mark.parametrize(
    "found_row, n, verdict",
    [
        (row(LedgerPlace.PARKING, 2), 2, CopyVerdict.START),
        (row(LedgerPlace.PARKED, 2), 2, CopyVerdict.START),
        (row(LedgerPlace.PARKED, 2), 1, CopyVerdict.OVER),  # ignoring n would start early
        (row(LedgerPlace.PARKING, 2), 1, CopyVerdict.APPEND),  # died between row and append (L18)
        (row(LedgerPlace.RUNNING, 2, EPOCH), 2, CopyVerdict.OVER),  # a copy of the same runs here
        (row(LedgerPlace.RUNNING, 2, EPOCH - 1), 2, CopyVerdict.START),  # a former owner of the due stream died (L17)
        (row(LedgerPlace.RUNNING, 2, EPOCH - 1), 1, CopyVerdict.OVER),
        (row(LedgerPlace.RUNNING, 2, EPOCH + 1), 2, CopyVerdict.STALE),
        (row(LedgerPlace.RUNNING, 2, EPOCH + 1), 1, CopyVerdict.STALE),
        (row(LedgerPlace.PARKING, 2, EPOCH + 1), 2, CopyVerdict.STALE),  # the ledger was put back from a backup
        (row(LedgerPlace.PARKED, 2, EPOCH + 1), 2, CopyVerdict.STALE),
        (row(LedgerPlace.PARKING, 2, EPOCH), 2, CopyVerdict.START),
        (row(LedgerPlace.DONE, 2), 2, CopyVerdict.OVER),
        (row(LedgerPlace.DEAD, 2), 2, CopyVerdict.OVER),
        (row(LedgerPlace.SUSPECT, 0), 1, CopyVerdict.OVER),
        (None, 2, CopyVerdict.OVER),
    ],
)
def test_what_a_copy_does_with_what_it_finds(found_row, n, verdict):
    assert copy_finds(found_row, n, EPOCH) is verdict


def test_the_owner_of_a_running_copy_starts_it_again_only_from_the_exact_row_it_knows():
    mine = row(LedgerPlace.RUNNING, 2, EPOCH, fence=9)
    assert copy_finds(mine, 2, EPOCH, mine) is CopyVerdict.START
    assert copy_finds(mine, 2, EPOCH, mine._replace(fence=8)) is CopyVerdict.OVER


def test_two_copies_of_one_item_in_one_batch_start_once():
    plan = starts({7: row(LedgerPlace.PARKED, 1)}, [Due(7, 1), Due(7, 1)], EPOCH, 10, NOW)
    assert list(plan.start) == [0] and plan.over == [1]
    assert plan.start[0][1] == row(LedgerPlace.RUNNING, 1, EPOCH, fence=10)


def test_a_throttled_copy_waits_for_its_time_whoever_reads_it_and_starts_once():
    ran = row(LedgerPlace.RUNNING, 2, EPOCH, fence=9)
    waiting = throttled(ran, History(throttles=3), NOW + 4)
    for epoch in (EPOCH, EPOCH + 1):
        plan = starts({7: waiting}, [Due(7, 2), Due(7, 2)], epoch, 10, NOW)
        assert (plan.wait, plan.start, plan.over) == ({0: NOW + 4}, {}, [1])
        plan = starts({7: waiting}, [Due(7, 2)], epoch, 10, NOW + 4)
        assert plan.start[0][1]._replace(epoch=0, fence=0) == row(LedgerPlace.RUNNING, 2, throttles=3, due=NOW + 4)
    assert not is_suspect(waiting, EPOCH + 1)


def test_what_is_tried_again_from_its_source_has_its_time_and_a_mark_keeps_it():
    failed_once = suspect(None, 7, History(2), due=NOW + 4)
    assert (failed_once.due, failed_once.attempts, is_marked(failed_once)) == (NOW + 4, 1, False)
    assert suspect(failed_once, 7, History(2), epoch=EPOCH).due == NOW + 4
    assert suspect(failed_once, 7, History(2, 1), due=0.0).due == 0.0


def test_a_copy_s_fence_must_rise():
    with pytest.raises(ValueError, match="must rise"):
        running(row(LedgerPlace.PARKED, fence=10), Due(7, 1), EPOCH, 10)


def test_a_newer_owner_s_row_ends_the_older():
    assert starts({7: row(LedgerPlace.RUNNING, 1, EPOCH + 1)}, [Due(7, 1)], EPOCH, 10, NOW).stale


def test_counts_are_kept_apart_and_outlive_every_move():
    """Given an item that was suspected after two crashes, when it fails, is parked, started and fails again, then its
    row says so all along."""
    mark = suspect(None, 7, History(1, 2, 1))
    assert history(mark) == History(1, 2, 1)
    first = parking(mark, 7, failed(1, 2), due=50.0, fence=3, first_seen=10.0)
    assert (first.place, first.n, first.attempts, first.crashes, first.first_seen) == (
        LedgerPlace.PARKING,
        1,
        1,
        2,
        10.0,
    )
    started = running(first._replace(place=LedgerPlace.PARKED), Due(7, 1, history=History(2, 3, 0)), EPOCH, 4)
    assert (started.attempts, started.crashes) == (1, 3)
    second = parking(started, 7, failed(2, 3), due=90.0, fence=4, first_seen=77.0)
    assert (second.n, second.attempts, second.crashes, second.first_seen) == (2, 2, 3, 10.0)
    assert history(second).attempt == 3


def test_a_mark_of_a_takeover_runs_alone_and_a_mere_count_does_not():
    assert is_marked(suspect(None, 7, History(), epoch=EPOCH))
    assert not is_marked(suspect(None, 7, History(3)))
    assert not is_marked(row(LedgerPlace.RUNNING, epoch=EPOCH))


def test_a_suspicion_never_forgets_what_was_counted():
    assert suspect(row(LedgerPlace.SUSPECT, crashes=2), 7, History(1, 0)).crashes == 2


def test_what_follows_the_write_of_a_parking_row():
    wanted = row(LedgerPlace.PARKING, 2, due=5.0)
    assert after_parking(wanted, wanted) is Next.APPEND
    assert after_parking(wanted, row(LedgerPlace.PARKING, 3)) is Next.APPEND
    assert after_parking(wanted, None) is Next.OVER  # the checkpoint has passed it (L13)
    for place in (LedgerPlace.PARKED, LedgerPlace.RUNNING, LedgerPlace.DONE, LedgerPlace.DEAD):
        assert after_parking(wanted, row(place, 2)) is Next.OVER
    assert after_parking(wanted, row(LedgerPlace.RUNNING, 1)) is Next.OVER  # a newer owner runs it
    assert after_parking(wanted, row(LedgerPlace.SUSPECT, 0)) is Next.AGAIN


def test_only_what_a_former_owner_ran_is_suspect():
    assert is_suspect(row(LedgerPlace.RUNNING, 1, EPOCH - 1), EPOCH)
    assert not is_suspect(row(LedgerPlace.RUNNING, 1, EPOCH), EPOCH)
    assert not is_suspect(row(LedgerPlace.PARKED, 1, EPOCH - 1), EPOCH)


def test_a_row_knows_the_end_of_the_attempt_that_it_was_written_after():
    for place in LedgerPlace:
        assert knows_end(row(place, fence=9), 9) is (place is not LedgerPlace.RUNNING)
        assert not knows_end(row(place, fence=8), 9)
        assert knows_end(row(place, fence=10), 9), "a later attempt was made, be it that it runs"
    assert not knows_end(None, 9)
    assert not knows_end(row(LedgerPlace.PARKING, due=NOT_YET, fence=9), 9), "it is detached, and runs"


def test_a_mark_has_the_fence_of_the_attempt_that_ended_and_no_older_one():
    assert suspect(None, 7, History(2), fence=9).fence == 9
    assert suspect(row(LedgerPlace.SUSPECT, fence=9), 7, History(), EPOCH).fence == 9, "marked by a new owner"


def test_no_row_has_an_older_fence_than_the_one_before_it():
    before = row(LedgerPlace.SUSPECT, fence=9)
    assert parking(before, 7, failed(), NOW, 0, NOW).fence == 9, "it ends without a run, as one that expires does"
    assert detached(before, 7, History(), 10, NOW).fence == 10


def test_a_row_says_that_it_was_appended_only_when_it_is_not_due_soon():
    assert is_soon(row(LedgerPlace.PARKING, 1, due=NOW - 1.0), NOW)
    assert is_soon(row(LedgerPlace.PARKING, 1, due=NOW + SOON), NOW)
    assert not is_soon(row(LedgerPlace.PARKING, 1, due=NOW + SOON + 0.1), NOW)


class OneItem(RuleBasedStateMachine):
    """One item, its source's owner, the owner of its due stream, and a delay service that repeats and reorders. Every
    durable write is a step of its own; owners die between any two, and a write's reply may be lost (repeated).

    The run of an attempt is live from its start to its end or the death of whoever handed it out, since a new owner
    waits for the lease.
    """

    def __init__(self):
        super().__init__()
        self.row: LedgerEntry | None = None
        self.settled = False  # in the source: the checkpoint has passed it
        self.log: list[tuple[int, bool]] = []  # the due stream: n of each copy, and whether it is settled
        self.source_epoch = self.due_epoch = 1
        self.fence = 0
        self.fences: list[int] = []
        self.live = 0
        self.completed = 0
        self.failures = 3
        self.throttles = 2
        self.source = self.run_source()
        self.copies: dict[int, object] = {}

    def swap(self, before, wanted):
        """Changes a row as the store does, by compare-and-set; a row below the checkpoint is never created."""
        if self.row == before and not (before is None and self.settled):
            self.row = wanted
        return self.row

    def attempt(self, fence):
        assert not self.live, "two live"
        assert not self.fences or fence > self.fences[-1], "a fence went back"
        self.fences.append(fence)
        self.live += 1

    def next_fence(self, above):
        self.fence = max(self.fence, above) + 1
        return self.fence

    def run_source(self):
        """Runs the owner of the source, from reading the position to settling it."""
        known = self.row
        find = found(known)
        if find in (Find.RUN, Find.ALONE):
            fence = self.next_fence(0)
            self.attempt(fence)
            yield
            self.live -= 1
            if not self.failures:
                self.completed += 1
                self.settled = True
                return
            self.failures -= 1
            before, wanted = known, parking(known, 7, failed(1), 0.0, fence, 0.0)
            while True:
                now = self.swap(before, wanted)
                step = after_parking(wanted, now)
                if step is not Next.AGAIN:
                    break
                before, wanted = now, parking(now, 7, failed(1), 0.0, fence, 0.0)
            yield
            if step is Next.APPEND:
                yield from self.append(now)
        elif find is Find.APPEND:
            yield from self.append(known)
        self.settled = True

    def append(self, row):
        self.log.append((row.n, False))
        yield
        self.swap(row, row._replace(place=LedgerPlace.PARKED))
        yield

    def run_copy(self, at):
        n = self.log[at][0]
        seen = self.row
        yield  # between the read of the row and the write
        rows = {} if seen is None else {7: seen}
        fence = self.next_fence(seen.fence if seen else 0)
        plan = starts(rows, [Due(7, n)], self.due_epoch, fence, NOW)
        assert not plan.stale
        if plan.append:
            yield from self.append(plan.append[0])
        if plan.start:
            before, wanted = plan.start[0]
            assert before.n == n, "started from a row that is not its own: early"
            if self.swap(before, wanted) != wanted:
                yield from self.run_copy(at)
                return
            yield
            self.attempt(wanted.fence)
            yield
            self.live -= 1
            if self.throttles:
                self.throttles -= 1
                self.swap(wanted, throttled(wanted, History(), NOW))
                yield
                yield from self.run_copy(at)
                return
            if not self.failures:
                self.completed += 1
                yield
                self.swap(wanted, wanted._replace(place=LedgerPlace.DONE))
            else:
                self.failures -= 1
                again = parking(wanted, 7, failed(wanted.attempts + 1), 0.0, wanted.fence, 0.0)
                now = self.swap(wanted, again)
                yield
                assert after_parking(again, now) is Next.APPEND
                yield from self.append(now)
        self.log[at] = (n, True)

    @rule()
    def source_steps(self):
        next(self.source, None)
        self.sweep()

    @rule()
    def source_dies(self):
        if not self.settled:
            if found(self.row) in (Find.RUN, Find.ALONE):
                self.live = 0
                self.row = suspect(self.row, 7, History())
            self.source.close()
            self.source = self.run_source()

    @rule(at=st.integers(0, 5))
    def copy_steps(self, at):
        if self.log:
            self.copy_steps_once(at % len(self.log))
            self.sweep()

    @rule()
    def due_dies(self):
        if self.row is not None and self.row.place is LedgerPlace.RUNNING:
            self.live = 0
        self.due_epoch += 1
        self.copies = {}

    @rule(at=st.integers(0, 5))
    def delay_service_repeats(self, at):
        if self.log and len(self.log) < 12:
            self.log.append((self.log[at % len(self.log)][0], False))

    def sweep(self):
        if (
            self.settled
            and self.row is not None
            and (self.row.place in TERMINAL or self.row.place is LedgerPlace.SUSPECT)
        ):
            self.row = None

    @invariant()
    def a_passed_item_is_over_or_away(self):
        if self.settled and not self.completed:
            assert self.row is not None and self.row.place in AWAY
            assert any(not settled for _, settled in self.log), "nothing is left that could start it"

    def teardown(self):
        """Asserts that the item completes once faults cease, and no row stays."""
        self.failures = self.throttles = 0
        for _ in range(200):
            next(self.source, None)
            for at in range(len(self.log)):
                self.copy_steps_once(at)
            self.sweep()
        assert self.completed >= 1
        assert self.settled and self.row is None and all(settled for _, settled in self.log)

    def copy_steps_once(self, at):
        if not self.log[at][1]:
            if at not in self.copies:
                self.copies[at] = self.run_copy(at)
            next(self.copies[at], None)


OneItem.TestCase.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
TestOneItem = OneItem.TestCase
