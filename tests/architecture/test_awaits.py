"""Awaits over the source: values that others may change while a loop waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tailrace

ROOT = Path(tailrace.__path__[0])
VIEWS = ("values", "items", "keys")
LOOPS = ast.For | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def waiting_loops(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Loops that await while they walk over a dict that is an attribute: its owner may grow it meanwhile."""
    for node in ast.walk(tree):
        if not isinstance(node, LOOPS):
            continue
        walked = node.iter if isinstance(node, ast.For) else node.generators[0].iter
        over = walked.func if isinstance(walked, ast.Call) else None
        view = isinstance(over, ast.Attribute) and over.attr in VIEWS and isinstance(over.value, ast.Attribute)
        inside = (
            [each for part in node.body for each in ast.walk(part)] if isinstance(node, ast.For) else ast.walk(node)
        )
        if view and any(isinstance(each, ast.Await | ast.AsyncWith | ast.AsyncFor) for each in inside):
            yield node.lineno, ast.unparse(walked)


def test_such_a_loop_is_seen() -> None:
    code = "async def f(self):\n    for each in self.parts.values():\n        await each\n"
    copied = "async def f(self):\n    for each in [*self.parts.values()]:\n        await each\n"
    assert [*waiting_loops(ast.parse(code))] == [(2, "self.parts.values()")]
    assert not [*waiting_loops(ast.parse(copied))]
    assert [*waiting_loops(ast.parse("async def f(self): return {n: await e for n, e in self.parts.items()}"))]


def test_no_loop_awaits_while_it_walks_over_a_dict_that_others_change() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: walk over a copy, [*{walked}]"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] not in ("tests", "examples", "bench", ".venv")
        for line, walked in waiting_loops(ast.parse(path.read_text()))
    ]
    assert not wrong
