"""Dealing of tests to the processes of `make test`."""

from dealing import dealt


def test_each_begins_with_another_kind_and_all_have_equally_many() -> None:
    # Given two kinds of tests that take long, in bundles, and others
    worlds, servers, rest = [["w1"], ["w2"], ["w3"]], [["s1", "s2"], ["s3"]], list("abcdef")
    # When they are dealt to two processes, of which each takes half of the list
    found = dealt([worlds, servers], rest, 2)
    # Then each has half of what takes long, first, and no bundle is torn
    assert found == ["w1", "w3", "s3", "a", "b", "c", "s1", "s2", "w2", "d", "e", "f"]


def test_nothing_is_left_out_when_one_bundle_is_larger_than_a_part() -> None:
    assert sorted(dealt([[list("abcdefgh")], [["i"]]], ["j"], 3)) == list("abcdefghij")
