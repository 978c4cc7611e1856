"""Retries of a queue as probes of a clogged function: every other one, the one that is due for longest first."""

from __future__ import annotations

from tailrace.tailers.rules.retry_probes import FUNCTIONS, RETRIES, RetryProbes


def test_every_other_probe_is_a_retry_that_is_due() -> None:
    # Given a clogged function with two items that failed and are due again, and one that is not yet
    probes = RetryProbes()
    for id, due in (("b", 2.0), ("a", 1.0), ("c", 9.0)):
        probes.failed("f", id, due)
    assert probes.next(["f"], 5.0) == [], "nobody knows what goes first before the first probe"
    # When probes are claimed one after the other
    found = []
    for due in (100.0, 99.9, 101.0, 102.0):
        probes.probed("f", due)
        found.append(probes.next(["f"], 5.0))
        assert probes.next(["f"], 5.0) == []
    # Then those that are due go before what was claimed, and the other waits for its time
    assert found == [[("a", 100.0)], [("b", 99.9)], [], []]
    assert probes.next(["f"], 9.0) == [("c", 102.0)]


def test_what_waited_before_has_its_turn_between_two_retries() -> None:
    probes = RetryProbes()
    for number in range(4):
        probes.failed("f", str(number), 0.0)
    probes.probed("f", 10.0)
    assert len(probes.next(["f"], 1.0)) == 1
    # When the retry was not claimed, since another tailer had it, then the next probe is what comes
    assert probes.next(["f"], 1.0) == []


def test_a_function_that_is_well_again_has_no_probes() -> None:
    probes = RetryProbes()
    probes.failed("f", "a", 0.0)
    probes.failed("g", "b", 0.0)
    probes.probed("f", 10.0)
    probes.probed("g", 20.0)
    assert probes.next(["g"], 1.0) == [("b", 20.0)]
    assert probes.next(["f", "g"], 1.0) == []


def test_its_memory_is_bounded() -> None:
    probes = RetryProbes()
    for number in range(FUNCTIONS + 5):
        for id in range(RETRIES + 5):
            probes.failed(f"f{number}", str(id), 0.0)
    assert len(probes._due) == FUNCTIONS and {len(each) for each in probes._due.values()} == {RETRIES}
