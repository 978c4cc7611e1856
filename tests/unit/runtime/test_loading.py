"""Loading of functions by their names; a failure says where and why, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.model.errors import DeclarationError, UserError
from tailrace.runtime.loader import load_functions

HEAD = "from tailrace.sdk.function import function\n"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def _write(name: str, body: str) -> str:
    Path(name).write_text(HEAD + body)
    return name


def test_a_file_a_module_and_one_of_its_functions() -> None:
    _write("mill_a.py", "@function\nasync def one(): ...\n@function\ndef two(): ...\nalias = one\n")
    assert sorted(load_functions(["mill_a.py"]).functions) == ["one", "two"]
    assert sorted(load_functions(["mill_a"]).functions) == ["one", "two"]
    assert sorted(load_functions(["mill_a:two"]).functions) == ["two"]
    loaded = load_functions(["./mill_a.py:one"])
    assert loaded.modules == (f"{Path.cwd()}/mill_a.py:one",)
    assert sorted(loaded.functions) == ["one"]


def test_two_files_of_one_name_are_two_modules() -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        _write(f"{folder}/mill_b.py", f"@function\nasync def from_{folder}(): ...\n")
    assert sorted(load_functions(["a/mill_b.py", "b/mill_b.py"]).functions) == ["from_a", "from_b"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", "declares no functions"),
        ("x = 1 / 0\n", r"mill_c\.py:2: ZeroDivisionError: division by zero"),
        ("def f(:\n", r"mill_c\.py:2: SyntaxError"),
        ("import no_such_thing_here\n", r"mill_c\.py:2: ModuleNotFoundError: No module named 'no_such_thing_here'"),
        ("import sys\nsys.exit(3)\n", r"mill_c\.py:3: SystemExit: 3"),
        ("@function\ndef f(*a): ...\n", r"mill_c\.py:2: DeclarationError: function 'f' takes \*a"),
        ("@function\ndef f(a: 'Nowhere'): ...\n", "type hint cannot be resolved.*Nowhere"),
        (
            "@function(name='x')\ndef a(): ...\n@function(name='x')\ndef b(): ...\n",
            "two functions are called 'x': mill_c:2 and mill_c:4",
        ),
        (
            "@function(pool='p')\ndef a(): ...\n@function(pool='p', isolation='process')\ndef b(): ...\n",
            "pool 'p' has functions of both isolations",
        ),
    ],
)
def test_what_cannot_be_loaded_says_where_and_why(body: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        load_functions([_write("mill_c.py", body)])


def test_names_that_lead_nowhere() -> None:
    _write("mill_d.py", "@function\nasync def index(): ...\n")
    with pytest.raises(UserError, match="there is no file"):
        load_functions(["nowhere.py"])
    with pytest.raises(UserError, match="there is no module 'nowhere'"):
        load_functions(["nowhere"])
    with pytest.raises(UserError, match=r"there is no module 'mill_d\.sub'"):
        load_functions(["mill_d.sub"])
    with pytest.raises(UserError, match="did you mean 'index'"):
        load_functions(["mill_d:indexx"])
    with pytest.raises(UserError, match="no modules"):
        load_functions([])


def test_one_name_in_two_modules_names_both() -> None:
    _write("mill_e.py", "@function\nasync def same(): ...\n")
    _write("mill_f.py", "@function\nasync def same(): ...\n")
    with pytest.raises(DeclarationError, match="mill_e:2 and mill_f:2"):
        load_functions(["mill_e", "mill_f"])


def test_a_function_imported_elsewhere_counts_once() -> None:
    _write("mill_g.py", "@function\nasync def shared(): ...\n")
    _write("mill_h.py", "from mill_g import shared\n@function\nasync def other(): ...\n")
    assert sorted(load_functions(["mill_g", "mill_h"]).functions) == ["other", "shared"]
