"""`delay_log` in stores.yaml: which engine, with which options; every mistake at its key, no secret repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.config import loads
from tailrace.model.errors import ConfigError
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.engines import chosen_log
from tailrace.stores.log.redis import RedisLog
from tailrace.stores.log.sqlite import SqliteLog


def refused(text: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as refusal:
        loads(text, "stores.yaml", StoresConfig, environment=environment)
    return str(refusal.value)


def test_the_usual_engine_is_the_embedded_one(tmp_path: Path) -> None:
    assert chosen_log(StoresConfig().delay_log) is None
    assert isinstance(EmbeddedStores(tmp_path).delay_log, SqliteLog)


def test_another_engine_takes_its_own_options(tmp_path: Path) -> None:
    text = "delay_log: {engine: redis, url: '${URL}', prefix: mine}"
    config = loads(text, "stores.yaml", StoresConfig, environment={"URL": "redis://:secret@h:1/0"})
    stores = EmbeddedStores(tmp_path, config)
    assert isinstance(stores.delay_log, RedisLog)
    assert not (tmp_path / "delay.db").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delay_log: {engine: rediss}", 'unknown engine "rediss": did you mean'),
        ("delay_log: {engine: reddis}", "did you mean 'redis'?"),
        ("delay_log: {}", "expected an engine"),
        ("delay_log: {engine: sqlite, url: x}", 'the engine "sqlite" has no option'),
        ("delay_log: {engine: redis, adress: x}", "the engine \"redis\" has no option 'adress': it has"),
        ("delay_log: {engine: redis, timeout: soon}", "timeout"),
        ("delay_log: {engine: redis, prefix: 'a{b}'}", "prefix"),
    ],
)
def test_mistakes_are_told(text: str, words: str) -> None:
    assert words in refused(text)


def test_a_url_with_a_password_is_not_repeated() -> None:
    said = refused("delay_log: {engine: redis, url: 'http://:${SECRET}@h'}", SECRET="hunter2")
    assert "expected a URL" in said and "hunter2" not in said


def test_an_engine_whose_extra_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tailrace.stores.log.redis", None)
    said = refused("delay_log: {engine: redis}")
    assert "pip install 'tailrace[redis]'" in said
