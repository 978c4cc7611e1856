"""A row of an outbox becomes an item, or says what is wrong with it, by any writer."""

from __future__ import annotations

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.model.workload import Kind
from tailrace.stores.outbox.item import OutboxRow, item_of
from tailrace.stores.queue.admission import SUBMISSION_PREFIX

TOKEN = "0123456789abcdef" * 2
ROW = OutboxRow(7, TOKEN, "mail", b"{}", 2, "", "", "", "", "", -1.0, None)


def test_a_row_is_submitted_under_its_own_token_unless_it_has_a_dedupe_key() -> None:
    assert item_of(ROW, 100.0).dedupe_key == SUBMISSION_PREFIX + TOKEN
    assert item_of(ROW._replace(dedupe_key="welcome"), 100.0).dedupe_key == "welcome"
    assert item_of(ROW, 100.0, token=False).dedupe_key == ""


def test_times_count_from_when_the_row_was_read() -> None:
    item = item_of(ROW._replace(due_in=5.0, expires_in=65.0), 100.0)
    assert (item.due, item.expires_at) == (105.0, 165.0)
    assert item_of(ROW, 100.0).due == 0.0
    assert item_of(ROW._replace(expires_in=-500.0), 100.0).expires_at == 1.0  # long ago


def test_everything_is_carried_over() -> None:
    row = ROW._replace(collection="welcome", tenant="acme", key="ann", headers='[["a","b"]]', priority=0)
    item = item_of(row, 100.0)
    assert (item.kind, item.key, item.headers) == (Kind("mail", 0, "welcome", "acme"), "ann", (("a", "b"),))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"function": ""}, "function"),
        ({"function": "a b"}, "function"),
        ({"tenant": "?"}, "tenant"),
        ({"key": "k" * 201}, "key"),
        ({"key": "a\0"}, "NUL"),
        ({"dedupe_key": SUBMISSION_PREFIX + "x"}, "platform"),
        ({"priority": 4}, "priority is 4"),
        ({"priority": -1}, "priority"),
        ({"token": "mine"}, "hexadecimal"),
        ({"headers": '{"a": "b"}'}, "pairs"),
        ({"headers": '[["a", 1]]'}, "pairs"),
        ({"headers": "["}, "headers"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        item_of(ROW._replace(**wrong), 100.0)
