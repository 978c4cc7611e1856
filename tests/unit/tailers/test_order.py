"""Order: one at a time per key, in the order of the source, however items end; other keys never wait."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.model.workload import Kind
from tailrace.tailers.rules.order import PATIENCE, Order

KIND = Kind("f")
KEYS = st.sampled_from("abc")


class Lines(RuleBasedStateMachine):
    """Random steps on the order, against a model: per key the positions not over, in order; only the first may be
    out."""

    def __init__(self):
        super().__init__()
        self.order = Order()
        self.model = {}
        self.out = {}  # key → the position that may be handed out
        self.next = 0
        self.over = {}  # position → key, of what is over

    @rule(key=KEYS, gap=st.integers(0, 3))
    def an_item_is_read(self, key, gap):
        position = self.next + gap
        self.next = position + 1
        may_go = self.order.enter(key, position, KIND)
        assert may_go == (key not in self.model)
        self.model.setdefault(key, []).append(position)
        if may_go:
            self.out[key] = position

    @precondition(lambda self: self.out)
    @rule(data=st.data(), fails=st.booleans())
    def a_head_ends(self, data, fails):
        key = data.draw(st.sampled_from(sorted(self.out)))
        position = self.out[key]
        if fails:
            self.order.stuck((position,))
            assert self.order.enter(key, position, KIND), "its retry goes before everything behind it"
            return
        free = self.order.over((position,))
        self.model[key].pop(0)
        self.over[position] = key
        assert [each.position for each in free] == self.model[key][:1]
        if self.model[key]:
            self.out[key] = self.model[key][0]
        else:
            del self.model[key], self.out[key]

    @precondition(lambda self: self.over)
    @rule(data=st.data())
    def one_that_is_over_is_redriven(self, data):
        position = data.draw(st.sampled_from(sorted(self.over)))
        key = self.over.pop(position)
        may_go = self.order.enter(key, position, KIND)
        assert may_go == (key not in self.model)
        head, *others = self.model.get(key, [position])
        self.model[key] = [head, *sorted([*others, *([] if may_go else [position])])]
        if may_go:
            self.out[key] = position

    @rule(position=st.integers(0, 50))
    def what_is_no_head_changes_nothing(self, position):
        if position not in self.out.values():
            assert not self.order.is_head(position) and self.order.over((position,)) == []
            self.order.stuck((position,))

    @invariant()
    def counts_are_right(self):
        lines = {key: len(positions) - 1 for key, positions in self.model.items()}
        assert self.order.waiting == sum(lines.values())
        assert 0 <= self.order.moving <= self.order.waiting
        longest = self.order.longest()
        if longest is None:
            assert not any(lines.values())
        else:
            key, head, count = longest
            assert (head, count) == (self.out[key], max(lines.values()))


TestLines = Lines.TestCase


def test_what_waits_behind_a_failed_or_slow_head_does_not_keep_others_from_being_read():
    order = Order()
    for position in range(3):
        order.enter("slow", position, KIND)
        order.enter("failed", position + 10, KIND)
    assert order.moving == 4
    order.stuck((10,))
    assert order.moving == 2
    order.handed_out([0], 5.0)
    order.note_slow(5.0 + PATIENCE / 2)
    assert order.moving == 2
    order.note_slow(5.0 + PATIENCE)
    assert order.moving == 0
    order.enter("slow", 20, KIND)
    assert (order.moving, order.waiting) == (0, 5)
    order.over((0,))
    assert order.moving == 2, "the next of its key is not slow yet"


def test_a_key_is_busy_for_all_but_its_head_until_that_is_over():
    order = Order()
    assert not order.is_busy("a", 0) and order.enter("a", 0, KIND)
    assert order.is_busy("a", 1) and not order.is_busy("a", 0) and not order.is_busy("b", 2)
    order.stuck((0,))
    assert order.is_busy("a", 1), "one that failed is not over"
    order.over((0,))
    assert not order.is_busy("a", 1)


def test_a_key_is_busy_with_what_a_former_owner_handed_out():
    order = Order()
    order.shut = True
    assert order.adopt("a", 0, KIND) and order.is_busy("a", 1)
    order.open()
    assert order.is_busy("a", 1)


@given(st.lists(KEYS, max_size=20))
def test_a_new_kind_is_known_when_a_line_moves(keys):
    order = Order()
    heads = [position for position, key in enumerate(keys) if order.enter(key, position, KIND)]
    order.rename(lambda kind: kind._replace(priority=0))
    assert all(each.kind.priority == 0 for each in order.over(heads))


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=14), st.randoms(use_true_random=False))
def test_after_a_takeover_no_key_has_two_that_run_and_each_ends_in_order(items, chance):
    """Items by key; each says whether a former owner handed it out, so that it runs."""
    order = Order()
    order.shut = True
    running = {position for position, (_, runs) in enumerate(items) if runs}
    strays, heads = set(), set()  # of those that run: what has to run again, and what goes on
    for position, (key, runs) in enumerate(items):
        if runs:
            (heads if order.adopt(key, position, KIND) else strays).add(position)
        else:
            assert not order.enter(key, position, KIND), "nothing is handed out while some were not read"
    assert order.moving == 0
    offered = [each.position for each in order.open()]
    done = []
    while offered or strays or heads:
        what = chance.choice([each for each in (offered, strays, heads) if each])
        position = chance.choice(sorted(what))
        what.remove(position)
        if what is strays:
            running.discard(position)
            head = order.stopped(position)
            offered += [] if head is None else [head.position]
        elif what is heads:
            running.discard(position)
            done.append(position)
            offered += [each.position for each in order.over((position,))]
        elif order.enter(items[position][0], position, KIND):
            assert not any(items[each][0] == items[position][0] for each in running), "one of its key runs"
            running.add(position)
            heads.add(position)
    assert order.waiting == 0 and sorted(done) == list(range(len(items)))
    for wanted in "abc":
        mine = [position for position in done if items[position][0] == wanted]
        assert mine == sorted(mine)
