"""Configuration files: values that they may hold, and answers to bad ones."""

import os
import string
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tailrace.foundation.config import Bytes, Seconds, load, loads
from tailrace.model.errors import ConfigError, InvalidRequest


class Window(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int = Field(100, ge=1)
    bytes: Bytes = 1024


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    window: Window = Window()
    timeout: Seconds = 30.0
    mode: Literal["fast", "safe"] = "safe"
    share: float = 0.5
    tags: list[str] = []
    limits: dict[str, Window] = {}
    on: bool = False


def refusal(text: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        loads(text, "file.yaml", Settings, environment=environment or {})
    return str(caught.value)


def test_reads_durations_sizes_and_nested_values() -> None:
    text = "name: orders\ntimeout: 1m30s\nwindow: {items: 5, bytes: 16MiB}\nlimits: {a: {items: 2}}\ntags: [x, y]\n"
    found = loads(text, "file.yaml", Settings)
    assert found.timeout == 90.0
    assert found.window == Window(items=5, bytes=16 << 20)
    assert found.limits["a"].items == 2
    assert found.tags == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\nwindow:\n  itens: 3\n", "file.yaml:3: unknown key 'itens' under window; did you mean 'items'?"),
        ("name: a\nwindw: {}\n", "file.yaml:2: unknown key 'windw'; did you mean 'window'?"),
        ("name: a\nqqq: 1\n", "file.yaml:2: unknown key 'qqq'; known keys: limits, mode, name, on"),
        ("name: a\nlimits:\n  x:\n    itms: 1\n", "file.yaml:4: unknown key 'itms' under limits.x; did you mean"),
        ("name: a\nname: b\n", "file.yaml:2: key 'name' stands twice; keep one of them"),
        ("timeout: 3\n", "key 'name' is missing"),
        ("name: a\ntimeout: soon\n", "file.yaml:2: timeout: 'soon' is not a duration"),
        ("name: a\nwindow: {bytes: 5 apples}\n", "file.yaml:2: window.bytes: '5 apples' is not a size"),
        ("name: a\nwindow: 3\n", "file.yaml:2: window: expected keys and values below it, got 3"),
        ("name: a\nwindow: {items: 0}\n", "file.yaml:2: window.items: expected greater than or equal to 1, got 0"),
        ("name: a\nmode: quick\n", "file.yaml:2: mode: expected 'fast' or 'safe', got 'quick'"),
        ("name: [a\n", "not valid YAML"),
        ("name: !!python/name:os.system x\n", "tag 'tag:yaml.org,2002:python/name:os.system' is not allowed"),
        ("name: !mine x\n", "tag '!mine' is not allowed"),
        ("window: !!set {a}\nname: a", "tag 'tag:yaml.org,2002:set' is not allowed"),
        ("name: a\nwindow:\n  <<: {items: 3}\n", "file.yaml:3: expected a plain key"),
        ("- 1\n", "file.yaml:1: expected keys and values at the top"),
        ("name: a\n---\nname: b\n", "not valid YAML"),
        (f"name: a\nshare: {'9' * 5000}\n", "file.yaml:2: '9999"),
        ("name: \x00\n", "not valid YAML"),
    ],
)
def test_bad_text_is_answered_with_file_line_key_and_expectation(text: str, says: str) -> None:
    assert says in refusal(text)


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    lines = refusal("timeout: soon\nwindow:\n  items: many\nmoed: safe\n").splitlines()
    assert [line.split(": ", 1)[0] for line in lines] == [f"file.yaml:{number}" for number in (1, 1, 3, 4)]


def test_variables() -> None:
    given = {"NAME": "orders", "ITEMS": "7", "EMPTY": ""}
    text = 'name: "${NAME}-${MISSING:-x}${EMPTY:-y}"\nwindow: {items: "${ITEMS}"}\ntags: ["$${NAME}", "a${EMPTY}b"]\n'
    found = loads(text, "file.yaml", Settings, environment=given)
    assert found.name == "orders-xy"
    assert found.window.items == 7
    assert found.tags == ["${NAME}", "ab"]
    assert loads("name: a\nwindow:\n  items: ${ITEMS}\n", "f", Settings, environment=given).window.items == 7


def test_a_missing_variable_is_named() -> None:
    assert "file.yaml:2: environment variable NOPE is not set" in refusal("name: a\nmode: ${NOPE}\n")
    assert "expected ${NAME} or ${NAME:-default}" in refusal("name: '${not closed'\n")


def test_the_value_of_a_variable_is_never_shown() -> None:
    text = refusal(
        "name: a\ntimeout: ${SECRET}\nmode: ${SECRET}\nwindow: {items: 'x${SECRET}'}\n", {"SECRET": "hunter2"}
    )
    assert "hunter2" not in text
    assert "${SECRET}" in text


def test_text_that_looks_like_a_time_stays_text() -> None:
    assert loads("name: 10:30\ntags: [2026-11-21, 1:2:3]", "f", Settings).tags == ["2026-11-21", "1:2:3"]


def test_an_alias_bomb_is_refused() -> None:
    levels = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for letter, previous in zip("bcdefgh", "abcdefg", strict=True):
        levels.append(f"{letter}: &{letter} [{', '.join([f'*{previous}'] * 9)}]")
    assert "more than 20000 values" in refusal("\n".join(levels))


def test_an_alias_of_itself_is_refused() -> None:
    assert "nested deeper than 20 levels" in refusal("name: &a [*a]")


def test_deep_nesting_is_refused() -> None:
    assert "nested deeper than 20 levels" in refusal("name: " + "[" * 100_000)
    assert "nested deeper than 20 levels" in refusal("name: " + "{a: " * 5000)


def test_many_values_are_refused() -> None:
    assert "more than 20000 values" in refusal("tags: [" + "1," * 300_000 + "]")


def test_many_uses_of_a_long_text_with_a_variable_are_refused() -> None:
    text = f'name: &a "{"x" * 100_000}${{A:-b}}"\ntags: [{", ".join(["*a"] * 100)}]\n'
    assert "characters of text with variables" in refusal(text)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "part.yaml"
    file.write_text("name: ok\n")
    assert load(file, Settings).name == "ok"

    def said(path: Path) -> str:
        with pytest.raises(ConfigError) as caught:
            load(path, Settings)
        return str(caught.value)

    assert said(tmp_path / "absent.yaml").endswith("absent.yaml: no such file")
    assert "not a file" in said(tmp_path)
    assert "no such file" in said(Path("a\0b"))
    file.write_bytes(b"name: \xff\n")
    assert "not UTF-8" in said(file)
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert "larger than 1048576 bytes" in said(file)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a file" in said(pipe)


def test_an_error_of_the_vocabulary_names_the_file() -> None:
    class Strict(BaseModel):
        @model_validator(mode="after")
        def _never(self) -> "Strict":
            raise InvalidRequest("not like this")

    with pytest.raises(ConfigError, match=r"file\.yaml: not like this"):
        loads("{}", "file.yaml", Strict)


@given(
    st.one_of(
        st.text(max_size=200),
        st.text(alphabet=string.printable, max_size=200),
        st.text(alphabet="abnme:{}[]&*!-|>'\"%@`,?# \n\t0123456789.~${}<", max_size=120),
    )
)
@settings(max_examples=400, deadline=None)
def test_no_text_gives_anything_but_settings_or_a_config_error(text: str) -> None:
    for candidate in (text, f"name: {text}", f"name: a\nwindow: {text}"):
        try:
            found = loads(candidate, "fuzz.yaml", Settings, environment={"A": text})
        except ConfigError as error:
            assert str(error).startswith("fuzz.yaml")
        else:
            assert isinstance(found, Settings)
