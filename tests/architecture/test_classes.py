"""Classes over the source: names that are told apart, and the changes of another class that a subclass may make."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import tailrace

ROOT = Path(tailrace.__path__[0])
#: The rooms whose classes are looked at.
ROOMS = ("tailers",)
#: Rooms in which aliases of types are told apart, too.
ALIASED = ("stores", "tailers")


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


def test_one_name_of_an_alias_means_one_thing_within_its_room() -> None:
    for room in ALIASED:
        places: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(path.read_text())
            names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
            for name in [*names, *(name for node in tree.body for name in aliases(node))]:
                places[name].append(path.relative_to(ROOT).as_posix())
        twice = {name: files for name, files in places.items() if len(files) > 1}
        assert not twice, "two classes or aliases of one name: give one of them a name that says more"


def aliases(node: ast.stmt) -> list[str]:
    """The aliases of types that a statement makes: capitalised names that are no constants, nor variables of types."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            targets = [target]
        case _:
            return []
    if isinstance(value, ast.Call):
        return []
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def test_an_alias_of_types_is_seen_and_constants_are_not() -> None:
    text = "Ends = dict[str, int]\nKey: TypeAlias = str\nT = TypeVar('T')\nTwo = TypeVar('Two')\nFEW = 3\n_X = 1\n"
    assert [name for node in ast.parse(text).body for name in aliases(node)] == ["Ends", "Key"]


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
