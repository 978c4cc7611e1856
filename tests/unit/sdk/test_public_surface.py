"""The public surface: sorted, lazy, light, and the same for type checkers as for programs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tailrace

SOURCE = Path(tailrace.__file__)
HEAVY = ("grpc", "google.protobuf", "yaml", "pydantic", "pydantic_core", "msgspec", "asyncio", "aiohttp", "sqlite3")


def seen_by_type_checkers() -> list[tuple[str, str]]:
    [block] = [
        node
        for node in ast.parse(SOURCE.read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    return [
        (statement.module or "", alias.asname or alias.name)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


def test_the_list_is_sorted_and_every_name_resolves() -> None:
    assert tailrace.__all__ == sorted(tailrace.__all__)
    for name in tailrace.__all__:
        assert getattr(tailrace, name) is not None
        assert name in dir(tailrace)


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    imports = seen_by_type_checkers()
    assert sorted(name for _, name in imports) == [name for name in tailrace.__all__ if name != "__version__"]
    assert {name: module for module, name in imports} == tailrace._HOME


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Clint"):
        tailrace.Clint  # noqa: B018


def test_the_version_is_the_project_s() -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())
    assert tailrace.__version__ == project["project"]["version"]


def test_importing_loads_nothing_heavy_and_takes_at_most_100_ms() -> None:
    # When a fresh interpreter imports the package a few times over
    program = (
        "import sys, time, json; before = set(sys.modules); start = time.perf_counter(); import tailrace;"
        "took = time.perf_counter() - start;"
        "print(json.dumps([took, sorted(set(sys.modules) - before)]))"
    )
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    # Then nothing heavy came with it, and it was quick
    loaded = runs[0][1]
    assert [name for name in loaded if name.startswith(HEAVY)] == []
    assert min(took for took, _ in runs) <= 0.1
