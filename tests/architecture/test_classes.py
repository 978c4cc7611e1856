"""Classes over the source: names that are told apart, and what a subclass may change of another class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import tailrace

ROOT = Path(tailrace.__path__[0])
#: The rooms whose classes are looked at.
ROOMS = ("tailers",)


class ClassFound(NamedTuple):
    """A class: where it is, its bases, and the functions that are its own."""

    file: str
    bases: list[str]
    functions: set[str]


def classes() -> dict[str, ClassFound]:
    found: dict[str, ClassFound] = {}
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                functions = {
                    each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                }
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                found[node.name] = ClassFound(path.relative_to(ROOT).as_posix(), bases, functions)
    return found


def inherited(name: str, known: dict[str, ClassFound]) -> set[str]:
    return {
        function
        for base in known[name].bases
        if base in known
        for function in known[base].functions | inherited(base, known)
    }


def test_no_subclass_overrides_what_is_private_to_another_class() -> None:
    known = classes()
    assert inherited("DuePump", known) >= {"_carry_out", "status"}, "both of its bases are seen"
    wrong = [
        f"{each.file}: {name}.{function}: make what differs a value that is given, or a public method"
        for name, each in known.items()
        for function in sorted(each.functions & inherited(name, known))
        if function.startswith("_") and not function.startswith("__")
    ]
    assert not wrong


def test_one_class_name_means_one_thing() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT)
        if file.parts[0] in ("tests", "examples", ".venv") or "_pb2" in file.name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file.as_posix())
    assert "QueuePump" in places
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert not twice, "two classes of one name: give one of them a name that says more"
