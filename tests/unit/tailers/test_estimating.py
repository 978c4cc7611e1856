"""Estimates that a tailer puts beside its items."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.foundation.config import loads
from tailrace.model.errors import ConfigError
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.unit_rate import UnitSource, amount_of
from tailrace.model.workload import Extra, Flight, Kind
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.mapping.estimating import put_estimates
from tailrace.tailers.mapping.record_values import unit_sources

FIELD = UnitSource("tokens", field="options.max")
HEADER = UnitSource("rows", 2.0, header="rows")


def flight(*payloads: bytes, headers: tuple[tuple[str, str], ...] = (), function: str = "f") -> Flight:
    size = len(payloads)
    extras = {0: Extra(key="k", headers=headers)} if headers else {}
    return Flight(1, 1, [Kind(function)] * size, [str(n) for n in range(size)], list(payloads), [1] * size, extras)


def units_of(made: Flight, *own: UnitSource, spec: FunctionSpec | None = None) -> list[tuple[tuple[str, float], ...]]:
    functions = {spec.name: spec} if spec is not None else {}
    put_estimates(made, own, functions, {name for name, each in functions.items() if each.units})
    return [made.extras[at].units if at in made.extras else () for at in range(len(made))]


def test_a_field_a_header_and_a_number_are_read() -> None:
    made = flight(b'{"options": {"max": 512}}', b'{"options": {"max": "7.5"}}', headers=(("rows", "9"),))
    assert units_of(made, FIELD, HEADER) == [(("tokens", 512.0), ("rows", 9.0)), (("tokens", 7.5), ("rows", 2.0))]
    assert made.extras[0].key == "k"


def test_what_the_file_says_goes_before_what_the_function_declares() -> None:
    spec = FunctionSpec("f", units=(UnitSource("tokens", 1.0), UnitSource("rows", 1.0)))
    assert units_of(flight(b"{}"), UnitSource("tokens", 5.0), spec=spec) == [(("tokens", 5.0), ("rows", 1.0))]
    assert units_of(flight(b"{}", function="g"), spec=spec) == [()]


def test_without_any_nothing_is_looked_at_and_nothing_is_put_there() -> None:
    made = flight(b"not json", b"{")
    assert units_of(made) == [(), ()]
    assert made.extras == {}


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"{", b"[]", b"5", b"\xff\x00", b"[" * 100_000, b'{"options": 5}', b'{"options": {"max": null}}'),
        *(b'{"options": {"max": true}}', b'{"options": {"max": -1}}', b'{"options": {"max": "nan"}}'),
        *(b'{"options": {"max": 1e300}}', b'{"options": {"max": [1]}}'),
        b'{"options": {"max": "' + b"9" * 100_000 + b'"}}',
    ],
)
def test_what_cannot_be_read_says_nothing(payload: bytes) -> None:
    assert units_of(flight(payload), FIELD) == [()]


@given(st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.lists(st.integers()))
def test_an_amount_is_a_number_within_its_bounds_or_none(value: Any) -> None:
    found = amount_of(value)
    assert found is None or (type(found) is float and 0 <= found <= 1e12)


def test_a_tailers_file_names_where_they_come_from() -> None:
    text = "name: t\nsource: {kind: log, stream: s}\nfunction: f\n"
    units = "units: {tokens: {field: max, default: '500'}, rows: 3, bytes: {header: size}}\n"
    found = unit_sources(loads(text + units, "t.yaml", TailerConfig, environment={}).units)
    assert found == (
        UnitSource("tokens", 500.0, field="max"),
        UnitSource("rows", 3.0),
        UnitSource("bytes", header="size"),
    )


@pytest.mark.parametrize(
    ("units", "says"),
    [
        ("{tokens: -1}", "greater than or equal to 0"),
        ("{tokens: .nan}", "finite"),
        ("{tokens: many}", "number"),
        ("{'a b': 1}", "not a name"),
        ("{tokens: {field: max, default: lots}}", "expected a number"),
        ("{tokens: {feild: max}}", "header"),
        ("{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}", "at most 8"),
    ],
)
def test_a_wrong_file_is_refused(units: str, says: str) -> None:
    text = f"name: t\nsource: {{kind: log, stream: s}}\nfunction: f\nunits: {units}\n"
    with pytest.raises(ConfigError, match=says):
        loads(text, "t.yaml", TailerConfig, environment={})
