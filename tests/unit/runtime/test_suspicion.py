"""Suspicion: whose fault a dead process was."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.runtime.rules.suspicion import EXHAUSTED, ProcessDeath, by_deadline, cause, death_reason, verdicts

KEYS = st.sets(st.integers(1, 50), max_size=20)


def test_causes_are_named() -> None:
    assert cause(3) == "exited with code 3"
    assert cause(-9) == "was killed by SIGKILL"
    assert cause(-250) == "was killed by signal 250"
    assert by_deadline(ProcessDeath(-signal.SIGALRM))
    assert by_deadline(ProcessDeath(-signal.SIGKILL, overdue=True))
    assert not by_deadline(ProcessDeath(-signal.SIGKILL))
    assert not by_deadline(ProcessDeath(-signal.SIGKILL, overdue=True, what="kept the interpreter lock"))
    assert not by_deadline(ProcessDeath(-signal.SIGSEGV, overdue=True))


def test_what_ran_is_a_suspect_with_its_last_note_and_what_waited_is_held() -> None:
    ends = verdicts([1, 2], {1}, ProcessDeath(-11), {1: "half"})
    assert (ends[1].outcome, ends[1].crashed, ends[1].progress) == (Outcome.LOST, True, "half")
    assert ends[1].reason == "the process was killed by SIGSEGV while it ran; last note: half"
    assert (ends[2].outcome, ends[2].crashed) == (Outcome.HELD, False)


def test_a_dead_letters_reason_says_what_is_known_of_the_death() -> None:
    mib = 1 << 20
    known = ProcessDeath(-9, alone=True, ran=2.13, peak=812 * mib, floor=60 * mib, bound=1 << 30)
    assert death_reason(known, note="page 7") == (
        "the process was killed by SIGKILL after it ran 2.13 s, at 812 MiB of memory (it may allocate 1 GiB); "
        "last note: page 7"
    )
    # A peak that its starter had already says only that it had no more
    assert death_reason(ProcessDeath(3, peak=60 * mib, floor=60 * mib), others=2) == (
        "the process exited with code 3 while it ran, with 2 others running, at most 60 MiB of memory"
    )
    assert "ran out of memory" in death_reason(ProcessDeath(EXHAUSTED, bound=mib))
    assert "exited with code 71" in death_reason(ProcessDeath(EXHAUSTED))
    assert len(death_reason(known, note="x" * 1024)) < 400


def test_a_culprit_gets_its_own_end_and_neighbours_no_suspicion() -> None:
    culprit = Ended(Outcome.RETRY, "timed out after 1s")
    ends = verdicts([1, 2, 3], {1, 2}, ProcessDeath(70, "a timeout", {1: culprit}), {})
    assert ends[1] == culprit
    assert (ends[2].outcome, ends[2].crashed) == (Outcome.LOST, False)
    assert ends[3].outcome == Outcome.HELD


@pytest.mark.parametrize("death", [ProcessDeath(-signal.SIGALRM), ProcessDeath(-signal.SIGKILL, overdue=True)])
def test_the_kernels_timer_makes_no_suspects(death: ProcessDeath) -> None:
    ends = verdicts([1], {1}, death, {})
    assert (ends[1].outcome, ends[1].crashed) == (Outcome.LOST, False)
    assert "lease" in ends[1].reason


@given(KEYS, KEYS, st.integers(-64, 255), st.sampled_from(["", "drained"]), st.booleans(), st.booleans(), KEYS)
def test_every_item_ends_once_and_only_what_ran_unexplained_is_suspected(
    live: set[int], running: set[int], code: int, why: str, alone: bool, overdue: bool, guilty: set[int]
) -> None:
    culprits = dict.fromkeys(guilty, Ended(Outcome.RETRY, "guilty")) if why else None
    death = ProcessDeath(code, why, culprits, alone, overdue=overdue)
    ends = verdicts(live, running, death, {})
    assert ends.keys() == live
    for key, end in ends.items():
        assert end.crashed == (key in running and not why and not by_deadline(death))
        if culprits and key in culprits:
            assert end.outcome == Outcome.RETRY
        elif key not in running:
            assert end.outcome == Outcome.HELD
        else:
            assert end.outcome == Outcome.LOST


def test_what_waited_for_other_work_had_begun_and_is_no_suspect() -> None:
    # Given one that ran, one that waited for other work, and one that had not begun
    ends = verdicts([1, 2, 3], {1}, ProcessDeath(-11), {2: "half"}, {2})
    assert [(ends[key].outcome, ends[key].crashed) for key in (1, 2, 3)] == [
        (Outcome.LOST, True),
        (Outcome.LOST, False),
        (Outcome.HELD, False),
    ]
    assert (ends[2].reason, ends[2].progress) == (
        "its process was killed by SIGSEGV, while it waited for other work",
        "half",
    )
    # One that was ended on purpose says why
    why = verdicts([2], set(), ProcessDeath(-9, "it did not quit"), {}, {2})[2].reason
    assert why == "its process was ended: it did not quit, while it waited for other work"
