"""Names and keys that no engine takes, and that each is refused by its name."""

from __future__ import annotations

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.model.workload import Kind
from tailrace.stores.queue.admission import LONGEST_KEY, check
from tailrace.stores.queue.queue import NewItem

LONG = "é" * (LONGEST_KEY // 2 + 1)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (NewItem(Kind("\ud800"), b""), "its function has half a character"),
        (NewItem(Kind("f", 2, "", LONG), b""), "its tenant has more than 2000 bytes"),
        (NewItem(Kind("f"), b"", key="a\0b"), "its key has a NUL"),
        (NewItem(Kind("f"), b"", dedupe_key="a\0"), "its dedupe_key has a NUL"),
        (NewItem(Kind("f", 2, "\0"), b""), "its collection has a NUL"),
        (NewItem(Kind("f"), b"", key="k", dedupe_key="x" * (LONGEST_KEY + 1)), "its dedupe_key has more than 2000"),
        (NewItem(Kind("f"), b"", headers=(("ok", "\udc00"),)), "its header has half a character"),
    ],
)
def test_what_no_engine_takes_is_refused_by_its_place_and_name(item: NewItem, words: str) -> None:
    with pytest.raises(InvalidRequest, match=f"workload 1 for .*{words}"):
        check([NewItem(Kind("f"), b""), item], 1)


def test_the_longest_keys_pass_and_a_nul_in_a_header() -> None:
    fits = LONG[:-1]
    check([NewItem(Kind(fits), b"", key=fits, dedupe_key=fits, headers=(("é", "\0"),))], 1)
