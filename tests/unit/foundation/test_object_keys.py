"""Keys that the client cannot name."""

from __future__ import annotations

import obstore
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from tailrace.foundation.objects import offence

KEYS = st.text(st.sampled_from("ab0./ -\t\x1f\x7f\x80"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("key", "begins"),
    [
        ("a//b", "a//"),
        ("/x", "/"),
        ("a/./b", "a/./"),
        ("a/..", "a/.."),
        ("tab\tkey", "tab\t"),
        ("a/\x7f", "a/\x7f"),
        ("a/b", ""),
        ("a/.b", ""),
        ("a/", ""),
        ("a//", "a//"),
        ("a/./", "a/./"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_what_makes_it_so(key: str, begins: str) -> None:
    assert offence(key) == begins


@given(KEYS)
def test_it_is_what_the_client_says(key: str) -> None:
    assume(not key.startswith("/"))  # it leaves that out, as if the key had none, and so means another key
    try:
        obstore.put(MemoryStore(), key, b"")
    except ValueError:
        assert offence(key)
    else:
        assert not offence(key)
