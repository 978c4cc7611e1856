"""Usage: a scheduler's counts of who used how much, whatever becomes of the items."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.gateway.commands.usage import _rows
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.metrics import USAGE_UNITS
from tailrace.model.usage import (
    HOUR,
    MOST_FUNCTIONS,
    MOST_KINDS,
    MOST_UNIT_KINDS,
    MOST_UNIT_NAMES,
    OTHERS,
    UsageKind,
    UsageRow,
    of_unit,
    sums_of,
)
from tailrace.model.workload import INDEX_BITS, Ended, Flight, Kind, Outcomes
from tailrace.scheduler import usage as counting
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.flow import KIND
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import TailerSession, WorkerSession

WALL = 494_000.0 * HOUR


class Place:
    """A core with one tailer and one worker, whose clock is told."""

    def __init__(self, functions: tuple[str, ...] = ("f", "g"), slots: int = 10_000) -> None:
        self.now = 1000.0
        self.core = Core(SchedulerConfig(slow_start=0.0), LeaseSizes(), ready=True)
        self.tailer: TailerSession = self.core.attach_tailer("t", "t", self.now)
        self.core.tailer_connected(self.tailer)
        self.worker: WorkerSession = self.core.attach_worker("w", "w", self.now)
        self.core.lease_requested(self.worker, 1, self.now)
        specs = [FunctionSpec(name, downstreams=("smtp",) if name == "g" else ()) for name in functions]
        pool = PoolLimits("p", functions, slots, slots, False)
        self.core.worker_connected(self.worker, specs, [pool], self.now)
        self._flights = 0

    def push(self, *kinds: Kind) -> list[int]:
        """Hands kinds in and lets them start; returns the worker's refs of what was sent."""
        self._flights += 1
        size = len(kinds)
        number = self._flights
        flight = Flight(number, number, list(kinds), [f"{number}.{i}" for i in range(size)], [b""] * size, [1] * size)
        self.core.lease_requested(self.worker, number + 1, self.now)
        self.core.push(self.tailer, flight, self.tailer.requests.send(self.now), 30.0, self.now)
        self.core.turn(self.now, self.wall)
        refs: list[int] = []
        while (made := self.core.assignment(self.worker, self.now)) is not None:
            base = made[0].flight << INDEX_BITS
            refs += range(base, base + len(made[0].items))
        return refs

    @property
    def wall(self) -> float:
        return WALL + self.now - 1000.0

    def end(self, *refs: int) -> None:
        self.core.report(self.worker, Outcomes(list(refs), {}), self.now, self.wall)

    def spend(self, used: dict[int, tuple[tuple[str, str, float], ...]]) -> None:
        ends = {ref: Ended(1, used=each) for ref, each in used.items()}
        self.core.report(self.worker, Outcomes([], ends), self.now, self.wall)

    def fail(self, *refs: int) -> None:
        self.core.report(self.worker, Outcomes([], {ref: Ended(2, "no") for ref in refs}), self.now, self.wall)

    def told(self) -> list[UsageRow]:
        """Everything until now, in the form of reports."""
        usage = self.core.usage
        usage.cut(self.now, self.wall)
        found: list[UsageRow] = []
        while (report := usage.report("s")) is not None:
            found += report.rows
            usage.accepted(report.number)
        return sorted(found)


def row(function: str, tenant: str, items: int, seconds: float, hour: int = 494_000) -> UsageRow:
    return UsageRow(hour, function, tenant, "smtp" if function == "g" else "", items, round(seconds * 1e6))


def test_a_run_is_counted_with_the_time_that_its_worker_had_it() -> None:
    place = Place()
    refs = place.push(Kind("f", tenant="a"), Kind("f", tenant="a"), Kind("g", tenant="b"))
    place.now += 2
    place.end(refs[0])
    place.now += 1
    place.end(refs[1])
    place.fail(refs[2])
    assert place.told() == [row("f", "a", 2, 5), row("g", "b", 1, 3)]
    assert place.told() == []


def test_what_runs_long_is_counted_while_it_runs_and_each_hour_has_its_own() -> None:
    place = Place()
    [ref] = place.push(Kind("f"))
    place.now += 100
    assert place.told() == [row("f", "", 0, 100)]
    place.now += HOUR - 100
    place.core.usage.tick(place.now, place.wall)  # within a second of the hour it belongs to the next one
    place.now += 50
    place.end(ref)
    rows = place.told()
    assert sum(each.micros for each in rows) == round((HOUR - 50) * 1e6)
    assert [each.items for each in rows if each.items] == [1]


def test_what_runs_said_that_they_used_is_counted_by_downstream_and_unit() -> None:
    place = Place()
    refs = place.push(Kind("g", tenant="a"), Kind("g", tenant="a"), Kind("f", tenant="b"))
    place.now += 1
    place.spend({refs[0]: (("smtp", "bytes", 7.0), ("", "rows", 2.0)), refs[1]: (("", "bytes", 5.0),)})
    place.spend({refs[2]: (("elsewhere", "bytes", 1.0), ("", "bytes", math.nan), ("", "no name", 3.0))})
    # Then each is where it was used: without a name at the only downstream, with an unknown one at none
    found = {(each.function, each.tenant, each.downstreams): each for each in place.told()}
    assert found["g", "a", "smtp#bytes"].micros == 12
    assert found["g", "a", "smtp#rows"].micros == 2
    assert found["f", "b", "#bytes"].micros == 1
    assert len(found) == 5 and all(each.items == 0 for key, each in found.items() if "#" in key[2])
    assert place.core.limits.unknown["f"] == 1
    # And the numbers of this scheduler have it by function
    samples = {sample.labels: sample.value for sample in place.core.usage.samples() if sample.metric is USAGE_UNITS}
    assert samples[("function", "g"), ("downstream", "smtp"), ("unit", "bytes")] == 12


def test_invented_units_and_tenants_take_bounded_room() -> None:
    place = Place()
    for number in range(3):
        refs = place.push(*[Kind("f", tenant=f"t{number}-{each}") for each in range(1000)])
        place.spend({ref: (("", f"u{number}-{at}", 1.0), ("", "rows", 1.0)) for at, ref in enumerate(refs)})
    usage = place.core.usage
    assert len(usage._units) <= 2 * MOST_UNIT_KINDS and len(usage._unit_names) == MOST_UNIT_NAMES
    units = [each for each in place.told() if "#" in each.downstreams]
    assert sum(each.micros for each in units if each.downstreams == "#rows") == 3000
    assert len(list(usage.samples())) < 300


def test_units_stand_beside_the_runs_of_who_used_them() -> None:
    rows = [
        UsageRow(1, "f", "a", "smtp,openai", 3, 9_000_000),
        UsageRow(1, "f", "a", of_unit("openai", "tokens"), 0, 812),
        UsageRow(2, "f", "a", of_unit("openai", "tokens"), 0, 8),
        UsageRow(1, "f", "b", of_unit("", "rows"), 0, 5),
    ]
    everything = UsageKind(0, "")
    by_function = sums_of(rows, ["function"], everything)
    assert _rows(by_function, ["function"]) == [
        {"function": "f", "items": 3, "slot_seconds": 9.0, "units": {"tokens": 820, "rows": 5}}
    ]
    by_downstream = {
        each["downstream"]: each for each in _rows(sums_of(rows, ["downstream"], everything), ["downstream"])
    }
    assert by_downstream["openai"] == {
        "downstream": "openai",
        "items": 3,
        "slot_seconds": 9.0,
        "units": {"tokens": 820},
    }
    assert by_downstream["smtp"]["units"] == {} and by_downstream[""]["units"] == {"rows": 5}
    narrowed = sums_of(rows, ["tenant"], UsageKind(0, "", "", "openai"))
    assert _rows(narrowed, ["tenant"]) == [{"tenant": "a", "items": 3, "slot_seconds": 9.0, "units": {"tokens": 820}}]


def test_what_waits_for_other_work_takes_no_time() -> None:
    place = Place()
    parent, other = place.push(Kind("f"), Kind("g"))
    place.now += 1
    place.core.waits(place.worker, [parent], [], place.now)
    place.now += 10
    assert place.told() == [row("f", "", 0, 1), row("g", "", 0, 11)]
    place.now += 10
    place.core.waits(place.worker, [], [parent], place.now)
    place.now += 2
    place.end(parent, other)
    assert place.told() == [row("f", "", 1, 2), row("g", "", 1, 12)]


def test_one_that_ends_while_it_waits_is_counted_and_takes_no_time_for_that() -> None:
    place = Place()
    [parent] = place.push(Kind("f"))
    place.now += 1
    place.core.waits(place.worker, [parent], [], place.now)
    place.now += 10
    place.end(parent)
    assert place.told() == [row("f", "", 1, 1)]
    assert place.worker.gone_on == {}


def test_what_was_never_sent_is_not_counted() -> None:
    place = Place()
    place.core.worker_draining(place.worker, place.now)
    assert place.push(Kind("f")) == []
    assert place.told() == []


def test_what_is_lost_with_its_worker_is_counted_until_then() -> None:
    place = Place()
    place.push(Kind("f"))
    place.now += 4
    place.core.forget_worker(place.worker, place.now)
    assert place.told() == [row("f", "", 1, 4)]


def test_a_report_is_the_same_until_it_is_accepted_and_what_follows_is_in_the_next() -> None:
    place = Place()
    usage = place.core.usage
    [ref] = place.push(Kind("f"))
    place.now += 1
    usage.cut(place.now, place.wall)
    first = usage.report("s")
    place.now += 1
    place.end(ref)
    usage.cut(place.now, place.wall)
    assert first is not None
    assert usage.report("s") == first
    usage.accepted(first.number + 1)
    assert usage.report("s") == first
    usage.accepted(first.number)
    second = usage.report("s")
    assert second is not None
    assert (second.number, second.rows) == (first.number + 1, [row("f", "", 1, 1)])


def test_invented_tenants_are_one_sum_of_their_function() -> None:
    place = Place()
    for first in range(0, MOST_KINDS + 500, 500):
        place.end(*place.push(*(Kind("f", tenant=f"t{number}") for number in range(first, first + 500))))
        place.now += 1
    place.end(*place.push(Kind("g", tenant="late")))
    rows = place.told()
    assert len(rows) == MOST_KINDS + 2
    assert [each for each in rows if each.tenant == OTHERS] == [row("f", OTHERS, 500, 0), row("g", OTHERS, 1, 0)]
    assert len(place.core.usage.samples()) == 2 * 2


def test_a_gateway_that_stays_away_costs_no_more_than_the_bound() -> None:
    place = Place()
    for _ in range(3):
        for first in range(0, 6000, 500):
            place.end(*place.push(*(Kind("f", tenant=f"t{number}") for number in range(first, first + 500))))
            place.now += 1
        place.core.usage.cut(place.now, place.wall)
        place.now += HOUR
    rows = place.told()
    assert len(rows) <= MOST_KINDS + MOST_FUNCTIONS + 3
    assert sum(each.items for each in rows) == 18_000


def test_beyond_the_exact_ones_one_batch_stands_for_several_and_the_sums_are_right() -> None:
    place = Place(slots=20_000)
    kinds = [Kind("f", tenant=f"t{number % 10}") for number in range(500)]
    batches = counting.EXACT // 500 + 2 * counting.ONE_IN
    refs = [place.push(*kinds) for _ in range(batches)]
    place.now += 0.25
    for each in refs:
        place.end(*each)
    rows = place.told()
    assert sum(each.items for each in rows) == 500 * batches
    assert sum(each.micros for each in rows) == round(500 * batches * 0.25 * 1e6)
    assert {each.items for each in rows} == {50 * batches}


kinds = st.builds(Kind, st.sampled_from(["f", "g"]), st.just(1), st.sampled_from(["", "c"]), st.sampled_from(["", "t"]))
steps = st.lists(
    st.one_of(
        st.lists(kinds, min_size=1, max_size=5),
        st.sampled_from(["end", "wait", "go on", "pass", "cut", "fail"]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=40)
@given(steps=steps, chance=st.randoms(use_true_random=False))
def test_in_any_story_each_run_counts_once_and_time_is_the_time_it_took(steps, chance) -> None:  # type: ignore[no-untyped-def]
    # Given a model that looks at every item
    place = Place()
    out: dict[int, Kind] = {}
    waiting: set[int] = set()
    items: Counter[tuple[str, str]] = Counter()
    seconds: Counter[tuple[str, str]] = Counter()
    rows: list[UsageRow] = []
    for step in [*steps, "pass", "cut"]:
        some = [ref for ref in out if chance.random() < 0.5]
        if isinstance(step, list):
            out |= {ref: place.worker.open[ref][KIND] for ref in place.push(*step)}
        elif step == "pass":
            place.now += 0.5
            for ref, kind in out.items():
                if ref not in waiting:
                    seconds[kind.function, kind.tenant] += 0.5
        elif step == "cut":
            rows += place.told()
        elif step in ("end", "fail"):
            (place.end if step == "end" else place.fail)(*some)
            for ref in some:
                kind = out.pop(ref)
                items[kind.function, kind.tenant] += 1
                waiting.discard(ref)
        elif step == "wait":
            place.core.waits(place.worker, some, [], place.now)
            waiting.update(some)
        else:
            place.core.waits(place.worker, [], some, place.now)
            waiting.difference_update(some)
    # Then the sums are the model's
    told: Counter[tuple[str, str]] = Counter()
    micros: Counter[tuple[str, str]] = Counter()
    for each in rows:
        told[each.function, each.tenant] += each.items
        micros[each.function, each.tenant] += each.micros
    assert +told == +items
    assert {kind: value / 1e6 for kind, value in micros.items() if value} == +seconds
