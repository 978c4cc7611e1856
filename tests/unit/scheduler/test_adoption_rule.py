"""The rule of adoption, searched exhaustively: whatever order things happen in, one owner's pushes count at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.scheduler.rules.adoption import AHEAD, LARGEST, AdoptedRow, plausible


def row(version: int = 0, epoch: int = 0, asked: int = 0) -> AdoptedRow:
    made = AdoptedRow()
    made.version, made.epoch, made.asked = version, epoch, asked
    return made


# ---- the rule alone


def test_a_row_that_was_never_shown_allows_nothing() -> None:
    assert not any(row().allows(epoch) for epoch in range(3))


def test_an_owner_that_showed_its_row_may_push_until_somebody_asks() -> None:
    made = row()
    assert made.show(epoch=4, version=9) and made.allows(4)
    assert made.ask(9) and not made.allows(4)
    assert not made.show(epoch=4, version=9) and not made.allows(4)
    assert made.show(epoch=4, version=10) and made.allows(4)


def test_who_asks_about_a_version_older_than_one_shown_is_refused_and_bars_nothing() -> None:
    made = row(version=10, epoch=4)
    assert not made.ask(9)
    assert made.allows(4)


def test_a_row_asked_about_before_it_was_shown_stays_barred_when_it_is_shown_late() -> None:
    made = row()
    assert made.ask(5)
    made.show(epoch=1, version=5)
    assert not made.allows(1)
    made.show(epoch=2, version=6)
    assert made.allows(2) and not made.allows(1)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30))
def test_nothing_goes_back_and_an_epoch_that_gave_way_never_counts_again(said: list[tuple[bool, int]]) -> None:
    made = row()
    newest = 0
    for shown, version in said:
        before = (made.version, made.asked, made.epoch)
        made.show(version // 3, version) if shown else made.ask(version)  # a version has one epoch; both only rise
        assert made.version >= before[0] and made.asked >= before[1] and made.epoch >= before[2]
        counting = [epoch for epoch in range(4) if made.allows(epoch)]
        assert len(counting) <= 1 and all(epoch >= newest for epoch in counting)
        newest = max([newest, *counting])
        if made.asked >= made.version:
            assert not counting


# ---- versions that nobody can have read

YEARS = st.floats(0, 9e9)


@given(wall=YEARS, drift=st.floats(-AHEAD, AHEAD), steps=st.integers(0, 1000), shown_before=st.floats(0, 1e9))
def test_whatever_a_store_can_have_said_is_plausible(
    wall: float, drift: float, steps: int, shown_before: float
) -> None:
    # Given a store whose clock is off by minutes, which wrote a version just now, after many in one moment
    store_clock = max(0.0, wall + drift - 0.002)
    version = min(int(store_clock * 1e6) + steps, LARGEST)
    shown = int(max(0.0, store_clock - shown_before) * 1e6)
    # Then whoever read it may ask, whether this scheduler was shown an older one or none
    assert plausible(version, shown, wall) and plausible(version, 0, wall)
    assert plausible(shown + 1, shown, 0.0), "the next version is, by any clock"


@given(wall=YEARS, shown=st.integers(0, 1 << 52), beyond=st.integers(1, 1 << 62))
def test_what_is_far_ahead_of_every_clock_is_made_up(wall: float, shown: int, beyond: int) -> None:
    latest = max(shown, int(wall * 1e6)) + int(AHEAD * 1e6)
    assert not plausible(latest + beyond, shown, wall)
    assert not plausible(LARGEST + 1, LARGEST, wall) and not row(version=LARGEST).show(9, 1 << 62)


# ---- the whole protocol, every order of every step


@dataclass(frozen=True)
class World:
    """One row in a store, an owner (epoch 1, version 1) and a taker; messages on their way may arrive in any order.

    `live` holds (scheduler, epoch) pairs under which the item may be running. `rows` is (version, epoch, asked) of each
    scheduler. A taker is 0 before it reads, then the version it read; `confirmed` are the schedulers that said yes.
    """

    store: tuple[int, int] = (1, 1)
    rows: tuple[tuple[int, int, int], ...] = ((1, 1, 0),)
    messages: frozenset[tuple[object, ...]] = frozenset()
    live: frozenset[tuple[int, int]] = frozenset()
    read: int = 0
    confirmed: frozenset[int] = frozenset()
    taken: int = 0  # the version that the taker's compare-and-set made
    dispatched: bool = False  # the taker runs the item itself
    adopted: bool = False  # an answer named the item as running
    reopened: int = 0
    story: tuple[str, ...] = field(default=(), compare=False, hash=False)


@dataclass(frozen=True)
class Bugs:
    """Ways to break the rule, to see that the search notices."""

    never_bars: bool = False
    compares_after_asking: bool = False
    reopening_keeps_version: bool = False
    any_version_lifts: bool = False


def steps(world: World, bugs: Bugs) -> Iterator[World]:
    """Every world that may be next."""

    def to(story: str, **changes: object) -> World:
        return replace(world, story=(*world.story, story), **changes)  # type: ignore[arg-type]

    version, epoch = world.store
    # The owner pushes its item, as long as it believes that it owns: its messages may be very late.
    for scheduler in range(len(world.rows)):
        if not world.live and not any(message[0] == "push" for message in world.messages):
            yield to(f"owner pushes to {scheduler}", messages=world.messages | {("push", scheduler)})
    # A session of the owner reopens: it renews its row, which raises the version, and shows it.
    if epoch == 1 and world.reopened < 2:
        new = version if bugs.reopening_keeps_version else version + 1
        shows = {("show", scheduler, 1, new) for scheduler in range(len(world.rows))}
        yield to(
            "owner reopens", store=(new, 1), reopened=world.reopened + 1, messages=world.messages | frozenset(shows)
        )
    # The taker reads, asks everybody, and takes when all said yes.
    if not world.taken and world.read != version:
        asks = {("ask", scheduler, version) for scheduler in range(len(world.rows))}
        yield to("taker reads", read=version, confirmed=frozenset(), adopted=False, messages=world.messages | asks)
    all_said_yes = len(world.confirmed) == len(world.rows)
    if not world.taken and all_said_yes and (version == world.read or bugs.compares_after_asking):
        shows = {("show", scheduler, 2, version + 1) for scheduler in range(len(world.rows))}
        yield to("taker takes", store=(version + 1, 2), taken=version + 1, messages=world.messages | shows)
    if world.taken and not world.adopted and not world.dispatched:
        yield to("taker runs it", dispatched=True)
    for message in world.messages:
        rest = world.messages - {message}
        yield from arrivals(world, bugs, message, rest)


def arrivals(
    world: World, bugs: Bugs, message: tuple[object, ...], rest: frozenset[tuple[object, ...]]
) -> Iterator[World]:
    """Worlds that follow from the arrival of a message."""

    def to(**changes: object) -> World:
        return replace(world, story=(*world.story, f"arrives {message}"), **changes)  # type: ignore[arg-type]

    what, scheduler = message[0], message[1]
    assert isinstance(scheduler, int)
    known = row(*world.rows[scheduler])

    def with_row() -> tuple[tuple[int, int, int], ...]:
        rows = list(world.rows)
        rows[scheduler] = (known.version, known.epoch, known.asked)
        return tuple(rows)

    if what == "push":
        if known.allows(1):
            yield to(messages=rest, live=world.live | {(scheduler, 1)})
        else:
            yield to(messages=rest)
    elif what == "show":
        _, _, epoch, version = message
        assert isinstance(epoch, int) and isinstance(version, int)
        if bugs.any_version_lifts and epoch == known.epoch:
            known.asked = 0
        new = known.show(epoch, version)
        live = world.live
        if new and epoch == 2:  # what waited in limbo is the taker's
            live = frozenset((where, 2 if where == scheduler else whose) for where, whose in live)
        yield to(messages=rest, rows=with_row(), live=live)
    else:
        version = message[2]
        assert isinstance(version, int)
        yes = version >= known.version if bugs.never_bars else known.ask(version)
        mine = yes and version == world.read
        confirmed = world.confirmed | {scheduler} if mine else world.confirmed
        adopted = world.adopted or (mine and any(where == scheduler for where, _ in world.live))
        yield to(messages=rest, rows=with_row(), confirmed=confirmed, adopted=adopted)


def search(schedulers: int, bugs: Bugs, limit: int = 200_000) -> tuple[int, World | None]:
    """Searches every world that can be reached. Returns how many there are, and the first in which two live."""
    first = World(rows=((1, 1, 0),) * schedulers)
    seen = {first}
    todo = [first]
    while True:
        if not todo or len(seen) > limit:
            return len(seen), None
        world = todo.pop()
        for after in steps(world, bugs):
            if two_live(after):
                return len(seen), after
            if after not in seen:
                seen.add(after)
                todo.append(after)


def two_live(world: World) -> bool:
    """Whether the item runs although the taker, who was not told of it, hands it out."""
    return len(world.live) + world.dispatched > 1


@pytest.mark.parametrize("schedulers", [1, 2])
def test_no_order_of_steps_makes_two_live(schedulers: int) -> None:
    worlds, bad = search(schedulers, Bugs())
    assert bad is None, "\n".join(bad.story)
    assert 500 < worlds < 200_000, "the search must end by itself"


@pytest.mark.parametrize(
    "bugs",
    [
        pytest.param(Bugs(never_bars=True), id="a confirmation bars nothing"),
        pytest.param(Bugs(compares_after_asking=True), id="the taker compares what it reads after asking"),
        pytest.param(Bugs(any_version_lifts=True), id="a late showing of the version asked about lifts the bar"),
        pytest.param(Bugs(any_version_lifts=True, reopening_keeps_version=True), id="reopening keeps the version"),
    ],
)
def test_each_part_of_the_rule_is_needed(bugs: Bugs) -> None:
    _, bad = search(1, bugs)
    assert bad is not None
