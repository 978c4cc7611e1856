"""The relay's rule: rows of registered functions go, others wait, and a key keeps its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.relay import step, still_waiting


def test_rows_of_unknown_functions_wait_and_others_pass() -> None:
    assert step(["mail", "typo", "mail"], ["", "", ""], {"mail"}) == ([0, 2], {"typo"})


def test_later_rows_of_a_waiting_row_s_key_wait_too() -> None:
    assert step(["mail", "typo", "mail", "mail"], ["k", "k", "k", "j"], {"mail"}) == ([0, 3], {"typo"})


def test_where_nobody_can_say_all_go() -> None:
    assert step(["mail", "typo"], ["k", "k"], None) == ([0, 1], set())


def test_a_function_is_waited_for_until_it_is_registered() -> None:
    assert still_waiting({"mail", "typo"}, {"mail"}) == {"typo"}
    assert still_waiting({"typo"}, None) == set()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "k", "l"])), max_size=30),
    st.sets(st.sampled_from("abc")),
)
def test_what_goes_is_registered_and_in_order_and_passes_nothing_of_its_key(
    rows: list[tuple[str, str]], registered: set[str]
) -> None:
    go, unknown = step([function for function, _ in rows], [key for _, key in rows], registered)
    assert go == sorted(set(go))
    assert {rows[index][0] for index in go} <= registered
    assert unknown == {function for function, _ in rows} - registered
    stay = set(range(len(rows))) - set(go)
    for index in stay:
        function, key = rows[index]
        # Nothing waits without a reason, and nothing of a key passes one of it that waits
        assert function not in registered or any(rows[other][1] == key != "" for other in stay if other < index)
        assert not key or not any(rows[other][1] == key for other in go if other > index)
