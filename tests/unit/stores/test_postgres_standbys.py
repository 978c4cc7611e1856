"""The sentence that a start says on promotions, and the form of writes that wait for a standby."""

from __future__ import annotations

import pytest

from tailrace.stores.postgres.commits import confirmed, relaxed
from tailrace.stores.postgres.standbys import promotion_loses


@pytest.mark.parametrize(
    ("names", "commit", "standbys", "said"),
    [
        ("second", "on", 1, "loses nothing that was confirmed"),
        ("second", "remote_apply", 0, "loses nothing that was confirmed"),
        ("second", "local", 0, ""),
        ("second", "local", 1, "synchronous_commit is local"),
        ("second", "off", 1, "synchronous_commit is off"),
        ("", "on", 2, "(2 now; synchronous_standby_names is empty)"),
        ("", "on", 0, ""),
    ],
)
def test_a_start_says_what_a_promotion_loses_where_there_are_standbys(
    names: str, commit: str, standbys: int, said: str
) -> None:
    sentence = promotion_loses("the queue on db", names, commit, standbys)
    assert said in sentence and bool(said) == bool(sentence)


def test_a_write_logs_something_beside_its_call_and_only_there() -> None:
    call = "SELECT gone FROM S.forget(%s) AS gone UNION ALL SELECT 1 FROM S.other"
    assert confirmed(call).count("pg_logical_emit_message") == relaxed(call).count("set_config") == 1
    assert confirmed(call).endswith(" AS something, S.forget(%s) AS gone UNION ALL SELECT 1 FROM S.other")
