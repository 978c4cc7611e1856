"""The end of an executor takes along all of its own processes that can be found, and no other that got a number of
theirs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime.rules.ending import ITS_PARENTS_TURN, NEVER, Process, Ward, below, due_at, theirs


def pids(found: list[Process]) -> set[int]:
    return {process.pid for process in found}


#: The executor 50, a leader, was started at 100 by the supervisor 20, child of the guard 10.
GUARD = Process(10, 1, 10, 10, 80)
SUPERVISOR = Process(20, 10, 10, 10, 90)
EXECUTOR = Process(50, 20, 50, 50, 100, "m")
WARD = Ward("m", 50, 100, seen=150)
SPARED = {1, 10, 20}


def test_children_groups_sessions_and_what_bears_the_mark_belong_to_an_executor() -> None:
    table = [
        *[GUARD, SUPERVISOR, EXECUTOR],
        Process(51, 50, 50, 50, 110, "m"),
        Process(52, 51, 52, 50, 111),  # without the mark, in a group of its own
        Process(53, 1, 53, 53, 112, "m"),  # a daemon
        Process(54, 53, 54, 54, 113),  # its child, which left session and environment
        Process(55, 1, 54, 54, 114),  # in the session of that one, an orphan
        Process(60, 20, 60, 60, 105, "other"),  # another executor
        Process(61, 60, 60, 60, 106, "other"),
        Process(70, 1, 70, 70, 10),
    ]
    assert pids(theirs(table, WARD, SPARED)) == {50, 51, 52, 53, 54, 55}


def test_a_dead_one_is_not_ended_again_and_still_says_whose_its_session_is() -> None:
    zombie = Process(50, 20, 50, 50, 100, dead=True)
    late = Process(51, 10, 50, 50, 10_000)
    assert pids(theirs([zombie, late], WARD, SPARED)) == {51}
    assert theirs([zombie], WARD, SPARED) == []


def test_when_its_number_may_be_anothers_only_what_was_there_before_counts() -> None:
    old, new = Process(51, 10, 50, 50, 140), Process(52, 10, 50, 50, 160)
    assert pids(theirs([old, new], WARD, SPARED)) == {51}
    # the number was given out again: to a leader of a session, with a member
    other, member = Process(50, 1, 50, 50, 170), Process(53, 50, 50, 50, 171)
    assert theirs([other, member], WARD, SPARED) == []
    # and where it was never known, the mark alone counts
    unknown = Ward("m", 50)
    assert pids(theirs([old, Process(54, 1, 54, 54, 10, "m")], unknown, SPARED)) == {54}


def test_whoever_is_spared_is_neither_ended_nor_followed() -> None:
    # A supervisor that was itself started by an executor's function, or one that looks for what it started.
    assert pids(theirs([EXECUTOR, Process(51, 50, 50, 50, 110)], WARD, {1, 50})) == {51}


def test_what_descends_from_a_guard_is_below_it() -> None:
    table = [GUARD, SUPERVISOR, Process(51, 10, 51, 51, 10), Process(52, 51, 52, 52, 11), Process(70, 1, 70, 70, 12)]
    assert pids(below(table, 10, {1, 10, 20})) == {51, 52}


def test_when_a_guard_acts() -> None:
    assert due_at(0.0, 0.0, False, 5.0) == NEVER
    assert due_at(7.0, 0.0, False, 5.0) == 7.0
    assert due_at(0.0, 4.0, False, 5.0) == 4.0 + ITS_PARENTS_TURN
    assert due_at(4.1, 4.0, False, 5.0) == 4.1
    assert due_at(0.0, 0.0, True, 5.0) == 5.0


# -- whatever processes do ---------------------------------------------------------------------------------------------


@dataclass
class Known:
    process: Process
    own: bool  # the executor or started by it, however remotely


class Kernel:
    """A few numbers, given out again as soon as no process, group or session has them."""

    def __init__(self) -> None:
        self.tick = 100
        self.ward = Ward("m", 5, 100, seen=100)
        self.table = {
            1: Known(Process(1, 0, 1, 1, 1), False),
            2: Known(Process(2, 1, 2, 2, 2), False),
            5: Known(Process(5, 1, 5, 5, 100, "m"), True),
        }

    def alive(self) -> bool:
        known = self.table.get(5)
        return known is not None and known.process.start == 100

    def step(self, what: str, which: int, number: int) -> None:
        self.tick += 1
        able = [pid for pid in sorted(self.table) if pid != 1]
        if what == "look":
            if self.alive():
                self.ward.seen = self.tick
            return
        if not able:
            return
        pid = able[which % len(able)]
        known = self.table[pid]
        one = known.process
        match what:
            case "fork":
                taken = {n for k in self.table.values() for n in (k.process.pid, k.process.group, k.process.session)}
                free = [n for n in range(2, 9) if n not in taken]
                if free:
                    new = free[number % len(free)]
                    child = Process(new, pid, one.group, one.session, self.tick, one.mark)
                    self.table[new] = Known(child, known.own)
            case "session" if one.group != pid:
                one.group = one.session = pid
            case "group" if one.session != pid:
                one.group = pid
            case "forget":
                one.mark = ""
            case "exit":
                del self.table[pid]
                for other in self.table.values():
                    if other.process.parent == pid:
                        other.process.parent = 1


STEPS = st.tuples(
    st.sampled_from(["fork", "fork", "fork", "session", "group", "forget", "exit", "exit", "look"]),
    st.integers(0, 7),
    st.integers(0, 7),
)


@given(st.lists(STEPS, max_size=60))
def test_whatever_processes_do_no_strangers_end_and_all_that_can_be_found_does(
    steps: list[tuple[str, int, int]],
) -> None:
    kernel = Kernel()
    for step in steps:
        kernel.step(*step)
        table = [known.process for known in kernel.table.values()]
        found = pids(theirs(table, kernel.ward, {1}))
        own = {pid for pid, known in kernel.table.items() if known.own}
        assert found <= own
        assert {pid for pid in own if kernel.table[pid].process.mark} <= found
        if kernel.alive():
            beside = {pid for pid in own if 5 in (kernel.table[pid].process.session, kernel.table[pid].process.group)}
            assert beside <= found
            assert {pid for pid in own if kernel.table[pid].process.parent in found} <= found
