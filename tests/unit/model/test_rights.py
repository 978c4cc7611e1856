"""Rights: a right that nobody granted nobody has, however names look."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import InvalidRequest
from tailrace.model.name import is_name
from tailrace.model.rights import ACTIONS, Need, Right, missing, right_of, sentence

names = st.text(string.ascii_letters + string.digits + "_.-/:", min_size=1, max_size=6).filter(is_name)
patterns = st.one_of(names, names.map(lambda name: f"{name}*"), st.just("*"))
rights = st.builds(Right, st.sampled_from(ACTIONS), patterns, patterns, patterns)
needs = st.builds(Need, st.sampled_from(ACTIONS), *[st.one_of(names, st.just(""))] * 3)


@pytest.mark.parametrize(
    ("text", "need", "covered"),
    [
        ("submit", Need("submit", "f", "c", "t"), True),
        ("submit", Need("submit"), True),
        ("submit", Need("read", "f"), False),
        ("submit:f", Need("submit", "f", "c", "t"), True),
        ("submit:f", Need("submit", "ff"), False),
        ("submit:f", Need("submit"), False),  # of every function
        ("submit:mail.*", Need("submit", "mail.send"), True),
        ("submit:mail.*", Need("submit", "mail"), False),
        ("submit:mail.*", Need("submit"), False),
        ("submit:f#news", Need("submit", "f", "news"), True),
        ("submit:f#news", Need("submit", "f"), False),  # of no collection
        ("submit@acme", Need("submit", "f", "c", "acme"), True),
        ("submit@acme", Need("submit", "f", "c", "acme2"), False),
        ("submit@acme", Need("submit", "f"), False),  # of no tenant
        ("submit@acme*", Need("submit", "f", "", "acme2"), True),
        ("submit@acme*", Need("submit", "f", "", ""), False),
        ("operate:f/g:h#c@t", Need("operate", "f/g:h", "c", "t"), True),
    ],
)
def test_what_a_right_is_enough_for(text: str, need: Need, covered: bool) -> None:
    assert right_of(text).covers(need) is covered


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not an action that a right can allow"),
        ("Submit", "did you mean 'submit'"),
        ("*", "expected one of administer, operate, read, run, submit"),
        ("read:a b", "the function 'a b' is not a name"),
        ("read:*a", "the function '*a' is not a name"),
        ("read#c*d", "the collection 'c*d' is not a name"),
        ("read@\0", "the tenant"),
        ("read:" + "x" * 100_000, "is not a name"),
        ("read:\ud800", "is not a name"),
    ],
)
def test_what_is_no_right_is_said_with_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        right_of(text)
    assert says in str(refused.value) and len(str(refused.value)) < 1500
    str(refused.value).encode()


@given(rights)
def test_a_right_is_read_as_it_is_written(right: Right) -> None:
    assert right_of(str(right)) == right


@given(st.lists(rights, max_size=4), needs)
def test_more_rights_never_take_any_away(granted: list[Right], need: Need) -> None:
    for count in range(len(granted)):
        if missing(granted[:count], [need]) is None:
            assert missing(granted, [need]) is None


@given(rights, needs)
def test_whoever_may_do_it_on_all_may_do_it_on_each(right: Right, need: Need) -> None:
    if right.covers(Need(need.action)):
        assert right.covers(need)


@given(needs)
def test_without_rights_nothing_may_be_done(need: Need) -> None:
    assert missing((), [need]) == need
    assert missing((), []) is None
    assert sentence("the token x", (), need).endswith("and has none")


@given(needs)
def test_the_need_that_is_named_is_the_right_that_would_do(need: Need) -> None:
    assert right_of(str(need)).covers(need)
