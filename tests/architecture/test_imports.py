"""Imports, and who may make them: the contracts of pyproject.toml, and rules that they cannot express."""

import ast
from pathlib import Path

import grimp
import pytest
from importlinter import api

ROOT = Path(__file__).resolve().parents[2]

#: A client library, and the word that a file importing it must bear in its path.
ENGINES = {
    "sqlite3": "sqlite",
    "kafka": "kafka",
    "confluent_kafka": "kafka",
    "redis": "redis",
    "psycopg": "postgres",
    "obstore": "objects",
    "faststream": "faststream",
    "celery": "celery",
    "dramatiq": "dramatiq",
    "taskiq": "taskiq",
    "taskiq_redis": "taskiq",
    "rq": "rq",
    "procrastinate": "procrastinate",
}


def sources() -> list[Path]:
    outside = {"tests", "examples", "docs", "build", "dist"}
    return sorted(
        path
        for path in ROOT.rglob("*.py")
        if not path.name.endswith(("_pb2.py", "_pb2_grpc.py"))
        and not any(part.startswith(".") or part in outside for part in path.relative_to(ROOT).parts)
    )


def test_the_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    options = api.read_configuration()
    assert {contract["name"] for contract in options["contracts_options"]}
    from importlinter.application.use_cases import lint_imports
    from importlinter.cli import configuration

    configuration.configure()
    assert lint_imports(config_filename="pyproject.toml", cache_dir=None), "run .venv/bin/lint-imports --no-cache"


def test_a_client_library_is_imported_only_by_files_that_bear_its_engines_name() -> None:
    wrong = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for library in {name.split(".")[0] for name in names} & set(ENGINES):
                if ENGINES[library] not in str(path.relative_to(ROOT)):
                    wrong.append(f"{path.relative_to(ROOT)} imports {library}")
    assert not wrong


def test_no_modules_are_knotted_not_even_for_their_types() -> None:
    graph = grimp.build_graph("tailrace", exclude_type_checking_imports=False, cache_dir=None)
    modules = {name for name in graph.modules if "tests" not in name.split(".")}
    edges = {name: graph.find_modules_directly_imported_by(name) & modules for name in modules}
    assert [sorted(knot) for knot in strongly_connected(edges) if len(knot) > 1] == []


def strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's components, without recursion: two passes of depth-first search."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(edges):
        stack = [(start, iter(sorted(edges[start])))] if start not in seen else []
        seen.add(start)
        while stack:
            rest = stack[-1][1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            back[target].add(name)
    found: list[set[str]] = []
    placed: set[str] = set()
    for start in reversed(order):
        if start in placed:
            continue
        component, front = {start}, [start]
        placed.add(start)
        while front:
            for each in back[front.pop()] - placed:
                placed.add(each)
                component.add(each)
                front.append(each)
        found.append(component)
    return found
