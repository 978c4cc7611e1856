"""Clog: poison never freezes a function, an outage soon does, and one success opens it again."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.scheduler.rules.clog import KEYS, Clog, ClogLimits, ClogState

LIMITS = ClogLimits()


def fed(clog: Clog, outcomes: list[bool], now: float = 0.0, key: str = "") -> int:
    """Feeds outcomes one by one until the function freezes; returns how many that took."""
    for index, well in enumerate(outcomes):
        clog.note(int(well), [] if well else [key], now)
        if clog.state is not ClogState.HEALTHY:
            return index + 1
    return len(outcomes)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.randoms(use_true_random=False)), min_size=1, max_size=12),
    st.integers(1, 64),
)
def test_poison_of_one_in_five_never_freezes(blocks: list[tuple[int, random.Random]], batch: int) -> None:
    # Given outcomes of which in each hundred at most twenty fail, in any order, even all twenty in a row
    outcomes: list[bool] = []
    for bad, shuffle in blocks:
        block = [False] * bad + [True] * (100 - bad)
        if shuffle.random() < 0.7:
            shuffle.shuffle(block)
        outcomes += block
    # When they come in batches of any size
    clog = Clog(LIMITS, 0.0)
    for start in range(0, len(outcomes), batch):
        part = outcomes[start : start + batch]
        clog.note(sum(part), [""] * (len(part) - sum(part)), start / 100)
        # Then nothing freezes
        assert clog.state is ClogState.HEALTHY


@given(st.integers(0, 3000), st.floats(0, 0.2), st.integers(1, 64), st.integers(0, 100))
def test_an_outage_freezes_after_a_few_dozen_failures(healthy: int, poison: float, batch: int, seed: int) -> None:
    # Given a function of any age with some poison
    clog, dice = Clog(LIMITS, 0.0), random.Random(seed)
    for _ in range(healthy):
        well = dice.random() >= poison
        clog.note(int(well), [] if well else [""], 0.0)
    # When everything fails
    taken = 0
    while clog.state is ClogState.HEALTHY:
        clog.note(0, [""] * batch, 0.0)
        taken += batch
    # Then it freezes within the bound that the documentation states, and a batch
    assert taken < 45 + batch


def test_the_stated_bound_is_exact() -> None:
    assert fed(Clog(LIMITS, 0.0), [False] * 100) == 45


@given(st.integers(1, 200))
def test_one_success_of_a_probe_opens_within_two_probe_periods(failures: int) -> None:
    # Given a function that is broken while so many probes fail
    clog = Clog(LIMITS, 0.0)
    fed(clog, [False] * 100)
    now, waits = 0.0, []
    for number in range(failures):
        waits.append(clog.next_probe() - now)
        now = clog.next_probe()
        assert clog.may_probe(now)
        clog.probe(now)
        assert clog.state is ClogState.PROBING and not clog.may_probe(now)
        clog.probed(f"item {number}", False, now)
        assert clog.state is ClogState.FROZEN
    # Then the waits doubled from one second to thirty
    assert waits == [min(30.0, 2.0**number) for number in range(failures)]
    # When it works again
    began = now
    now = clog.next_probe()
    clog.probe(now)
    clog.probed("another", True, now)
    # Then it is healthy with the first success, and the probe came after no more than the outage took
    assert clog.state is ClogState.HEALTHY
    assert now - began <= min(30.0, max(2.0, began + 1))


def test_few_outcomes_within_the_window_freeze_nothing() -> None:
    clog = Clog(LIMITS, 0.0)
    for number in range(1000):
        clog.note(0, [""], number * LIMITS.window / 10)
        assert clog.state is ClogState.HEALTHY
    assert clog.forgettable(1000 * LIMITS.window)


def test_a_busy_function_that_failed_once_is_forgotten_when_a_window_went_well() -> None:
    # Given one failure, and successes ever since
    clog = Clog(LIMITS, 0.0)
    clog.note(10, [""], 1.0)
    for second in range(2, int(LIMITS.window)):
        clog.note(100, (), float(second))
    # Then it is remembered for a window, and no longer
    assert not clog.forgettable(LIMITS.window)
    assert clog.forgettable(1.0 + LIMITS.window)


def test_a_poisoned_key_is_not_an_outage() -> None:
    clog = Clog(LIMITS, 0.0)
    assert fed(clog, [False] * 200, key="the same") == 200
    assert clog.state is ClogState.HEALTHY
    # … but when nothing else passes either for long enough, the function is what is broken
    assert fed(clog, [False] * 400, key="the same") < 400


def test_a_function_that_mostly_fails_is_left_alone_once_that_is_usual() -> None:
    clog, dice = Clog(LIMITS, 0.0), random.Random(1)
    now, freezes = 0.0, 0
    for _ in range(20_000):
        now += 0.1
        if clog.state is ClogState.HEALTHY:
            well = dice.random() < 0.08
            clog.note(int(well), [] if well else [""], now)
            freezes += clog.state is not ClogState.HEALTHY
        elif clog.may_probe(now):
            clog.probe(now)
            clog.probed(str(now), dice.random() < 0.08, now)
    assert 0 < freezes < 20
    for _ in range(5_000):
        now += 0.1
        well = dice.random() < 0.08
        clog.note(int(well), [] if well else [""], now)
    assert clog.state is ClogState.HEALTHY
    # When nothing at all passes any more, it freezes even so
    assert fed(clog, [False] * 200, now) < 100


def test_what_was_still_running_and_ends_well_thaws() -> None:
    clog = Clog(LIMITS, 0.0)
    fed(clog, [False] * 100)
    clog.note(40, [], 0.5)
    assert clog.state is ClogState.HEALTHY


def test_an_item_that_is_the_only_one_does_not_freeze_its_function_for_ever() -> None:
    clog = Clog(LIMITS, 0.0)
    fed(clog, [False] * 100)
    for _ in range(3):
        clog.probe(clog.next_probe())
        clog.probed("the same", False, clog.next_probe())
    assert clog.state is ClogState.HEALTHY


def test_a_probe_that_never_ends_keeps_the_next_one_back_only_so_long() -> None:
    clog = Clog(LIMITS, 0.0)
    fed(clog, [False] * 100)
    clog.probe(1.0)
    assert not clog.may_probe(30.9)
    assert clog.may_probe(31.0)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 50), st.lists(st.text(max_size=3), max_size=50)), max_size=50))
def test_its_memory_is_bounded(batches: list[tuple[int, list[str]]]) -> None:
    clog = Clog(LIMITS, 0.0)
    for index, (passed, failed) in enumerate(batches):
        clog.note(passed, failed, index)
        assert len(clog._keys) <= KEYS
        assert 0 <= clog.passing <= 1 and 0 <= clog.usual <= 1 and clog.seen >= 0
