"""Offsets that a member tells its group: never less than the group knows, from whichever member."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.tailers.rules.group_offsets import Settled, to_tell

PLACE = ("orders", 0)
MEMBERS = ("a", "b")


def test_what_is_settled_in_this_tenure_is_told_once():
    settled = {PLACE: Settled(5, 1)}
    assert to_tell(settled, {PLACE: 1}, {}) == {PLACE: 5}
    assert to_tell(settled, {PLACE: 1}, {PLACE: 5}) == {}


def test_nothing_is_told_of_a_partition_that_is_not_open_here():
    assert to_tell({PLACE: Settled(5, 1)}, {}, {}) == {}


def test_what_a_former_tenure_left_untold_is_the_next_owners_to_tell():
    assert to_tell({PLACE: Settled(5, 1)}, {PLACE: 2}, {}) == {}


def test_nothing_is_taken_back():
    assert to_tell({PLACE: Settled(5, 1)}, {PLACE: 1}, {PLACE: 7}) == {}


STEPS = st.tuples(st.sampled_from(["move", "open", "settle", "tell", "commit"]), st.sampled_from(MEMBERS))


@settings(max_examples=200)
@given(st.lists(STEPS, min_size=30, max_size=60))
def test_the_groups_offset_never_goes_back(steps):
    """Two members of a group, which moves the partition about; the one that has it opens it, from the checkpoint;
    settles, durably; hears of its own settling late; and commits, also when the partition is not its own any more."""
    group, checkpoint, tenure = 0, 0, 0
    has = "a"
    open_ = dict.fromkeys(MEMBERS, 0)  # the tenure of each member that has opened it; 0: it has not
    frontier = dict.fromkeys(MEMBERS, 0)
    settled = {member: {} for member in MEMBERS}
    told = {member: {} for member in MEMBERS}
    for step, member in steps:
        if step == "move":
            has = member
            for each in MEMBERS:  # also from one to itself: somebody else may have had it
                open_[each] = 0
                told[each].clear()
        elif step == "open" and has == member and not open_[member]:
            tenure += 1
            open_[member] = tenure
            frontier[member] = checkpoint
        elif step == "settle" and open_[member]:
            frontier[member] = checkpoint = max(checkpoint, frontier[member]) + 1
        elif step == "tell" and frontier[member]:
            former = settled[member].get(PLACE, Settled(0, 0))
            settled[member][PLACE] = Settled(frontier[member], open_[member] or former.tenure)
        elif step == "commit":
            tenures = {PLACE: open_[member]} if open_[member] else {}
            for at in to_tell(settled[member], tenures, told[member]).values():
                assert at >= group
                group = told[member][PLACE] = at
