"""`queue` in stores.yaml: which engine, with which options; every mistake at its key, no secret repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.migrating import migrate, schemas_of
from tailrace.foundation.config import loads
from tailrace.model.errors import ConfigError
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.postgres.queue import PostgresQueue
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SqliteQueue

ELSEWHERE = {"engine": "postgres", "url": "postgresql://127.0.0.1:1/nowhere"}


def refused(text: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as refusal:
        loads(text, "stores.yaml", StoresConfig, environment=environment)
    return str(refusal.value)


def test_the_usual_engine_is_the_embedded_one(tmp_path: Path) -> None:
    assert isinstance(EmbeddedStores(tmp_path).queue, SqliteQueue)


def test_another_engine_takes_its_own_options(tmp_path: Path) -> None:
    text = "queue: {engine: postgres, url: 'postgresql://ann@h:1/d', password: '${PASSWORD}', schema: mine}"
    config = loads(text, "stores.yaml", StoresConfig, environment={"PASSWORD": "hunter2"})
    assert isinstance(EmbeddedStores(tmp_path, config).queue, PostgresQueue)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queue: {engine: postgre}", "did you mean 'postgres'?"),
        ("queue: {engine: postgres, adress: x}", "the engine \"postgres\" has no option 'adress': it has"),
        ("queue: {engine: postgres, schema: 'a b'}", "expected lower-case letters"),
        ("queue: {engine: postgres, connections: 0}", "connections"),
        ("queue: {engine: redis, prefix: 'a{b}'}", "prefix"),
        ("queue: {engine: redis, url: 'http://h'}", "expected a URL such as redis://"),
        ("queue: {engine: sqlite, url: x}", 'the engine "sqlite" has no option'),
    ],
)
def test_mistakes_are_told(text: str, words: str) -> None:
    assert words in refused(text)


def test_a_url_with_a_password_is_not_repeated() -> None:
    said = refused("queue: {engine: postgres, url: 'mysql://u:${SECRET}@h'}", SECRET="hunter2")
    assert "expected a URL" in said and "hunter2" not in said


@pytest.mark.parametrize(("engine", "library"), [("postgres", "psycopg"), ("redis", "redis")])
def test_an_engine_whose_extra_is_missing_names_it(monkeypatch: pytest.MonkeyPatch, engine: str, library: str) -> None:
    for name in [name for name in sys.modules if name.startswith(f"tailrace.stores.queue.{engine}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"tailrace.stores.{engine}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert f"pip install 'tailrace[{engine}]'" in refused(f"queue: {{engine: {engine}}}")


async def test_what_waits_in_the_former_queue_is_not_left_behind(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        [(id, _)] = await stores.queue.submit([NewItem(Kind("f"), b"")])
    with pytest.raises(ConfigError, match="still has 1 workloads"):
        async with EmbeddedStores(tmp_path, StoresConfig(queue=ELSEWHERE)):
            pass
    async with EmbeddedStores(tmp_path) as stores:
        assert await stores.queue.cancel([id]) == ["cancelled"]
    async with EmbeddedStores(tmp_path, StoresConfig(queue=ELSEWHERE)):
        pass  # starts although its server is away


def test_nothing_is_migrated_where_nothing_is_on_a_server(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected postgres"):
        migrate(None, True, False)


def test_a_migration_knows_every_option_of_the_queue_and_names_a_shared_schema_once() -> None:
    queue = ELSEWHERE | {"poll_interval": "500ms"}
    places = schemas_of(StoresConfig(queue=queue, state=ELSEWHERE))
    assert [(each.server, each.db_schema) for each in places] == [("PostgreSQL at 127.0.0.1:1/nowhere", "tailrace")]
