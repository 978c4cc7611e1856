"""Bans of the style, each with its replacement; bounds on the length of files; the parts that must be documented."""

import ast
import functools
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: A call, what to write instead, and the files (or folders) that may make it.
BANS: dict[str, tuple[str, tuple[str, ...]]] = {
    "time.time": (
        "foundation.clock, or take `now`",
        ("foundation/clock.py", "*/commands.py", "bench/", "demo/"),
    ),
    "time.sleep": (
        "await an event; asyncio.sleep in a shell",
        ("sdk/client.py", "runtime/process_table.py", "bench/", "demo/"),
    ),
    "datetime.now": ("foundation.clock, or take `now`", ()),
    "datetime.utcnow": ("foundation.clock, or take `now`", ()),
    "yaml.load": ("foundation.config.load", ()),
    "yaml.safe_load": ("foundation.config.load", ()),
    "eval": ("nothing: configuration is data", ()),
    "exec": ("nothing: configuration is data", ()),
    "os.system": ("subprocess with a list of arguments", ()),
    "print": (
        "foundation.terminal.say in commands, a logger elsewhere",
        ("bench/", "demo/", "wire/generate.py", "assembly/child.py", "assembly/foreground.py"),
    ),
    "asyncio.get_event_loop": ("asyncio.get_running_loop", ()),
}
BANNED_IMPORTS = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc"}
LONGEST_FILE = 600
#: Words that name nothing: a docstring that begins so says something of a thing before it says of which.
NAMELESS = re.compile(
    r"\W*(?:"
    r"(?:what|which|when|where)(?:ever)?|who(?:ever|m|se)?|whether|why|how|until|"
    r"it|its|itself|this|that|these|those|they|their|them|he|she|we|our|"
    r"(?:every|any|no|some)(?:thing|body)|someone|"
    r"may|is|are|did|does|do|was|were|has|have|can|could|must|should|called|invariants?|"
    r"(?:all|any|each|both|one|several|some) (?:of which|that|what|which|who|whose)"
    r")\b",
    re.IGNORECASE,
)
#: Words with which a docstring does not begin, of a function, a class or a module: pronouns, words of a question,
#: prepositions and conjunctions, all of which leave open which thing is meant.
NO_START = re.compile(
    r"(?:"
    r"What|Whatever|Who|Whoever|Whom|Whose|Why|How|Where|Wherever|When|Whenever|"
    r"It|Its|They|Their|This|That|These|Those|The same|Else|"
    r"As|At|Behind|Beside|Besides|By|For|From|In|Into|Next to|Of|On|Since|To|Until|With|"
    r"After|Also|And|Before|But|If|Likewise|Not|Now|Once|Or|So|Then"
    r")\b"
)
#: Methods of one protocol that a part is given.
MOST_METHODS = 9


def tracked(*endings: str) -> list[Path]:
    """The committed files, or in a copy without git all files."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.decode().split("\0")
        paths = [ROOT / name for name in names if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.parts)]
    return [path for path in paths if path.is_file() and (not endings or path.name.endswith(endings))]


class Facts(NamedTuple):
    """The facts of a file that the tests below ask for: parsing it is most of what they do, and its tree is too large
    to be kept."""

    documented: bool
    calls: list[tuple[int, str]]
    imports: list[str]
    silent: list[tuple[int, str]]
    nameless: list[tuple[int, str]]
    ports: dict[str, int]


@functools.cache
def facts(path: Path) -> Facts:
    """The facts of a file: whether it says what it is, the calls and imports in it, its public parts without a word,
    those whose docstring does not name them, and how many methods each protocol has."""
    tree = ast.parse(path.read_text())
    found = Facts(ast.get_docstring(tree) is not None, [], [], [], [], {})
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if nameless(text, type(node)):
                found.nameless.append((getattr(node, "lineno", 1), " ".join(text.split())[:60]))
        if isinstance(node, ast.Call):
            found.calls.append((node.lineno, dotted(node.func)))
        elif isinstance(node, ast.Import):
            found.imports.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.imports.append(node.module or "")
        elif isinstance(node, ast.ClassDef) and "Protocol" in map(dotted, node.bases):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found.ports[node.name] = len(methods)
    for node in tree.body:
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if named and any(dotted(each).split(".")[-1] == "overload" for each in node.decorator_list):
            continue
        if named and not node.name.startswith("_") and ast.get_docstring(node) is None:
            found.silent.append((node.lineno, node.name))
    return found


def nameless(docstring: str, of: type[ast.AST]) -> bool:
    """Whether a docstring does not begin with the thing. A class's may not begin with one of its arguments either; a
    function's may begin with "Whether", which names what it returns."""
    if docstring.startswith("`"):
        return of is ast.ClassDef
    if of in (ast.Module, ast.ClassDef) and NAMELESS.match(docstring):
        return True
    return bool(NO_START.match(docstring))


def written() -> list[Path]:
    return [path for path in tracked(".py") if not path.name.endswith(("_pb2.py", "_pb2_grpc.py"))]


def shipped() -> list[Path]:
    outside = ("tests/", "examples/", "docs/")
    return [path for path in written() if not name_of(path).startswith(outside)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def may(path: Path, places: tuple[str, ...]) -> bool:
    name = name_of(path)
    return any(
        name == place
        or (place.endswith("/") and name.startswith(place))
        or (place.startswith("*/") and name.endswith(place[1:]))
        for place in places
    )


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def test_banned_calls() -> None:
    wrong = []
    for path in shipped():
        for line, called in facts(path).calls:
            ban = next((name for name in BANS if called == name or (called.endswith(f".{name}") and "." in name)), None)
            if ban and not may(path, BANS[ban][1]):
                wrong.append(f"{name_of(path)}:{line}: {called}(): write {BANS[ban][0]}")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_pickled() -> None:
    wrong = [
        f"{name_of(path)}: {name}"
        for path in tracked(".py")
        for name in facts(path).imports
        if name.split(".")[0] in BANNED_IMPORTS
    ]
    assert not wrong


def test_no_private_module_is_imported() -> None:
    """A library may change its private modules with any version. Generated code knows its own library's."""
    wrong = [
        f"{name_of(path)}: {name}"
        for path in shipped()
        for name in facts(path).imports
        if any(part.startswith("_") and part != "__future__" for part in name.split("."))
    ]
    assert not wrong


def test_ports_are_narrow() -> None:
    """A part that needs less than all of a wide port cannot say so: split it; an engine's protocol inherits the
    parts."""
    wide = {name for path in shipped() for name, methods in facts(path).ports.items() if methods > MOST_METHODS}
    assert wide == set()


def test_no_shelf_is_vague() -> None:
    assert [name_of(path) for path in tracked(".py") if VAGUE & {*path.relative_to(ROOT).parts[:-1], path.stem}] == []


def test_files_are_short() -> None:
    long = {name_of(path): len(path.read_text().splitlines()) for path in shipped()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}


def test_no_file_is_empty_but_those_that_only_mark_a_package() -> None:
    marks = {"__init__.py", "py.typed"}
    assert [name_of(path) for path in tracked() if path.name not in marks and path.stat().st_size == 0] == []


def test_every_module_says_what_it_is() -> None:
    silent = [name_of(path) for path in shipped() if path.read_text().strip() and not facts(path).documented]
    assert silent == []


def test_public_classes_and_functions_are_documented() -> None:
    """Methods that repeat a protocol's are documented there; in a conformance suite the laws' names say it all."""
    wrong = [
        f"{name_of(path)}:{line}: {name}"
        for path in shipped()
        if not name_of(path).startswith("testing/conformance/")
        for line, name in facts(path).silent
    ]
    assert not wrong, "\n".join(wrong)


def test_docstrings_name_the_thing_first() -> None:
    wrong = [f"{name_of(path)}:{line}: {text}" for path in written() for line, text in facts(path).nameless]
    assert not wrong, "begin with the thing, as a noun, or with what it does ('Records …'):\n" + "\n".join(wrong)


def test_what_a_docstring_may_begin_with() -> None:
    assert nameless("What a claim holds.", ast.Module)
    assert nameless("One whose lease ended.", ast.ClassDef)
    assert nameless("`size` processes.", ast.ClassDef)
    assert not nameless("`tailrace up`: all parts on one machine.", ast.Module)
    assert not nameless("Claims on the queue.", ast.Module)
    assert not nameless("Records what a tailer skips without running it.", ast.ClassDef)
    assert nameless("How many items wait.", ast.FunctionDef)
    assert nameless("The same, of a stream.", ast.AsyncFunctionDef)
    assert nameless("For people.", ast.FunctionDef)
    assert not nameless("Number of items that wait.", ast.FunctionDef)
    assert not nameless("Whether any item waits.", ast.FunctionDef)
    assert not nameless("`count` items.", ast.AsyncFunctionDef)
    assert not nameless("Items of the queue.", ast.FunctionDef)


#: Assembled from parts, so that this file does not hold what it forbids.
REGISTRIES = "|".join(re.escape(host) for host in ("pypi." + "org", "files.python" + "hosted.org", "docker" + ".io"))
MACHINE = "|".join(["/wo" + r"rk/\w+", "/ro" + r"ot/\w+"])
#: Numbers of requirements and sections that stand in no document of this repository. L1 to L20 are in docs/leases.md.
ELSEWHERE = r"\bR\d{1,3}\b|\bDESI" + r"GN(?:\.md|,? section)|\bLEA" + r"SES\b|\(I[1-7]\b"


@pytest.mark.parametrize(
    "pattern",
    [REGISTRIES, rf"(?<![\w.$])(?:{MACHINE})", ELSEWHERE],
    ids=["registry hosts", "machine paths", "documents of elsewhere"],
)
def test_no_file_names_what_its_reader_does_not_have(pattern: str) -> None:
    wrong = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        wrong += [f"{name_of(path)}: {match[0]}" for match in re.finditer(pattern, text)]
    assert not wrong


def test_names_of_test_files_are_unique() -> None:
    """The importlib mode would let one hide the other in reports."""
    names = [
        path.name for path in tracked(".py") if name_of(path).startswith("tests/") and path.name.startswith("test_")
    ]
    assert sorted(names) == sorted(set(names))
