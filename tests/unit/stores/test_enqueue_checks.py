"""Checks of `enqueue`, before it touches a connection."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import tailrace
from tailrace.model.errors import InvalidRequest, Unavailable
from tailrace.stores.outbox.row import MAX_DELAY, new_row
from tailrace.stores.outbox.table import quoted
from tailrace.stores.sqlite.errors import explained

NOW = 1_000_000.0


@tailrace.function
async def migrate(schema: str, outbox: str = "") -> None: ...


@pytest.mark.parametrize("option", [{"schema": "jobs"}, {"outbox": True}])
def test_an_option_that_is_an_argument_too_is_to_be_told_apart(option: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=r"both an argument of migrate and an option of enqueue"):
        tailrace.enqueue(object(), migrate, **option)  # type: ignore[call-overload]
    with pytest.raises(InvalidRequest, match="cannot enqueue with 'object'"):  # so far all was well
        tailrace.enqueue(object(), migrate, arguments={"schema": "x"}, **option)  # type: ignore[call-overload]


def test_a_row_says_everything_that_a_call_says() -> None:
    call = tailrace.Call(
        "mail", to="ann", delay="5m", expires_after="1h", key="k", dedupe_key="d", tenant="t", headers={"a": "b"}
    )
    row = new_row(call, 1, NOW)
    assert row[1:] == ("mail", b'{"to":"ann"}', 1, "", "t", "k", "d", '[["a","b"]]', 300.0, 0.0, 3600.0)
    assert len(row.token) == 32 and new_row(call, 1, NOW).token != row.token
    assert new_row(tailrace.Call("mail", at=NOW + 5), 2, NOW)[-3:] == (0.0, NOW + 5, -1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at": NOW + MAX_DELAY + 1}, "at most 30d"),
        ({"collection": "a b"}, "collection"),
        ({"collection": "a" * 201}, "collection"),
        ({"key": "a\0"}, "NUL"),
        ({"headers": {"a": "b" * 9000}}, "headers"),
        ({"headers": {"a": "\0"}}, "headers"),
        ({"on_done": "tell"}, "enqueue sends no callbacks: leave on_done out, or submit to a gateway"),
    ],
)
def test_what_no_queue_would_take_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        new_row(tailrace.Call("mail", **options), 2, NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a.b.c", 'a"; DROP TABLE x', "a b", "1a", "x" * 64])
def test_only_a_name_of_a_table_gets_into_a_statement(name: str) -> None:
    with pytest.raises(InvalidRequest, match="table"):
        quoted(name)


def test_no_library_is_loaded_but_the_caller_s_own() -> None:
    program = (
        "import sys, tailrace; tailrace.enqueue; "
        "print([each for each in ('psycopg', 'sqlalchemy', 'django', 'aiosqlite', 'sqlite3', 'grpc')"
        " if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_file_that_somebody_s_transaction_keeps_is_busy_and_not_broken(tmp_path: Path) -> None:
    # Given a transaction that stays open
    slow = sqlite3.connect(tmp_path / "queue.db", isolation_level=None)
    slow.execute("CREATE TABLE t (x)")
    slow.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(tmp_path / "queue.db", timeout=0)
    with pytest.raises(sqlite3.OperationalError) as busy:
        other.execute("INSERT INTO t VALUES (1)")
    # Then whoever writes beside it is told to come again
    assert isinstance(explained(busy.value, "the queue"), Unavailable)
    slow.close()
    other.close()
