"""Making way: claims of less urgent items rest while somebody submits more urgent ones, a few at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.claims_beside import SOON
from tailrace.stores.queue.making_way import FEW, LONGEST, MadeWay, MakingWay
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

URGENT, LESS = 0, 2
SHARE = 0.5


def busy(way: MakingWay, used: float, at: float = 100.0) -> MadeWay | None:
    """The way that a claim of both makes, 10 ms after the one before it, when the process used so much since."""
    way.submitted([URGENT], 1, at)
    assert way.made([URGENT, LESS], at, lambda: 7.0) is None  # the first one rests for nothing
    return way.made([URGENT, LESS], at + 0.01, lambda: 7.0 + used)


def test_a_claim_rests_until_the_process_had_its_share_and_leaves_what_is_as_urgent() -> None:
    # 8 ms of a processor are the half of 16: 6 ms more
    made = busy(MakingWay(SHARE), 0.008)
    assert made is not None and made.urgent == URGENT
    assert made.rest == pytest.approx(0.006)


def test_a_claim_of_a_process_that_is_idle_enough_rests_for_nothing() -> None:
    assert busy(MakingWay(SHARE), 0.004) is None


def test_a_rest_is_bounded_however_busy_the_process_is() -> None:
    way = MakingWay(SHARE)
    made = busy(way, 10.0)
    assert made is not None and made.rest == pytest.approx(LONGEST - 0.01)
    way.submitted([URGENT], 1, 100.0 + LONGEST)
    assert way.made([LESS], 100.0 + LONGEST, lambda: 20.0) is None


@pytest.mark.parametrize(
    ("submitted", "items", "after", "claimed", "share"),
    [
        ([URGENT], 1, 0.0, [URGENT], SHARE),
        ([LESS], 1, 0.0, [URGENT, LESS], SHARE),
        ([URGENT], FEW + 1, 0.0, [LESS], SHARE),
        ([URGENT], 1, 2 * SOON, [LESS], SHARE),
        ([URGENT], 1, -5.0, [LESS], SHARE),
        ([URGENT], 1, 0.0, [LESS], 1.0),
        ([], 0, 0.0, [LESS], SHARE),
    ],
    ids=["as urgent", "less urgent submitted", "many", "a while ago", "the clock was set back", "switched off", "none"],
)
def test_nothing_rests_where_nothing_more_urgent_is_submitted_a_few_at_a_time(
    submitted: list[int], items: int, after: float, claimed: list[int], share: float
) -> None:
    way = MakingWay(share)
    way.submitted(submitted, items, 100.0)
    for used in (0.0, 10.0):  # the second claim would rest
        assert way.made(claimed, 100.0 + after, lambda used=used: used) is None  # type: ignore[misc]


@given(st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 0.2), st.booleans()), max_size=50))
def test_what_is_less_urgent_is_claimed_within_the_longest_rest(steps: list[tuple[float, float, bool]]) -> None:
    # Given a process that works, and submissions in between
    way, now, used, since = MakingWay(SHARE), 1000.0, 0.0, 1000.0
    for passes, works, submits in steps:
        now, used = now + passes, used + works
        if submits:
            way.submitted([URGENT], 1, now)
        made = way.made([URGENT, LESS], now, lambda: used)  # noqa: B023 - called at once
        if made is None:
            since = now
        else:
            # Then no rest goes beyond that
            assert 0 < made.rest <= LONGEST
            assert now + made.rest <= since + LONGEST + 1e-6


@pytest.mark.parametrize(("share", "taken"), [(SHARE, ["u"]), (1.0, ["l", "u"])])
async def test_the_queue_hands_out_what_is_urgent_while_the_rest_waits(
    tmp_path: Path, share: float, taken: list[str]
) -> None:
    # Given a queue of a busy process with items of both, of which some of the less urgent ones were claimed just now
    clock = ManualClock()
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
    queue = SqliteQueue(file, StoresConfig(busy_share=share), clock)
    await file.open()
    await queue.open()
    demand = Demand({Cell("u", URGENT): 10, Cell("l", LESS): 2}, frozenset(), 10)
    await queue.submit([NewItem(Kind("u", URGENT), b"1")])
    await queue.submit([NewItem(Kind("l", LESS), b"1")] * 4)
    first = await queue.lease(demand, 60.0, 0.0)
    assert first is not None and len(first.ids) == 3
    # When an urgent one comes a moment later
    clock.advance(0.01)
    clock.used += 0.05
    await queue.submit([NewItem(Kind("u", URGENT), b"1")])
    second = await queue.lease(demand, 60.0, 0.0)
    # Then it is taken, and the others once the rest is over
    assert second is not None
    assert sorted({kind.function for kind in second.kinds}) == taken
    clock.advance(LONGEST)
    third = await queue.lease(demand, 60.0, 0.0)
    assert (third is not None) == (share < 1)
    assert len(first.ids) + len(second.ids) + (len(third.ids) if third is not None else 0) == 6
    await file.close()
