"""The ends of gates: late rather than early, whatever the clocks say."""

from __future__ import annotations

from tailrace.gateway.rules.gate_ends import LOOK, GateEnds
from tailrace.model.gate import Gate

#: A pause of 100 s, set at 1000.
GATE = Gate("f", "", "pause", since=1000.0, version=7, until=1100.0)
FOR_GOOD = Gate("g", "", "pause", since=1000.0, version=8)


def seen(now: float = 5.0) -> GateEnds:
    ends = GateEnds()
    ends.see([GATE, FOR_GOOD], now)
    return ends


def test_a_gate_ends_when_its_time_has_come_by_the_clock_and_by_the_trusted_time() -> None:
    ends = seen()
    assert ends.over([GATE, FOR_GOOD], 1099.9, 1099.9, 104.9) == []
    assert ends.over([GATE, FOR_GOOD], 1100.0, 1100.0, 6.0) == [GATE]


def test_a_clock_that_is_ahead_ends_no_gate_before_it_was_seen_for_its_whole_time() -> None:
    ends = seen()
    assert ends.over([GATE], 1e6, 0.0, 104.9) == []
    assert ends.over([GATE], 1e6, 0.0, 105.0) == [GATE]
    # And the time for which it was seen goes on, however often it is read
    ends.see([GATE], 90.0)
    assert ends.over([GATE], 1e6, 0.0, 105.0) == [GATE]


def test_a_clock_that_was_set_back_keeps_a_gate_until_its_time() -> None:
    assert seen().over([GATE], 1099.0, 1099.0, 1e6) == []


def test_a_gate_that_was_set_anew_is_another_one() -> None:
    ends = seen()
    ends.see([again := Gate("f", "", "pause", since=1090.0, version=9, until=1190.0)], 95.0)
    assert ends.over([again], 1e6, 0.0, 194.0) == []
    assert ends.over([again], 1e6, 0.0, 195.0) == [again]


def test_the_next_look_is_when_a_gate_may_be_over() -> None:
    ends = seen()
    assert ends.wait([FOR_GOOD], 1000.0, 1000.0, 5.0) is None
    assert ends.wait([GATE, FOR_GOOD], 1040.0, 1040.0, 45.0) == 60.0
    assert ends.wait([GATE], 1e6, 0.0, 45.0) == LOOK
    assert ends.wait([GATE], 1e6, 0.0, 104.0) == 1.0
