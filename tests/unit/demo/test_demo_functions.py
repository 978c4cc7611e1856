"""Functions of the demo: their results for a file, and their records of a run."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tailrace import Context, Fatal, Throttled
from tailrace.demo.functions import JOURNAL_VARIABLE, index, journaled, summarise, symbols_of
from tailrace.demo.journal import DemoFollower
from tailrace.demo.listing import link, python_files, spread, standard_library, write_broken


def test_symbols_are_classes_functions_and_methods(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class A:\n    def f(self): ...\n    class B:\n        async def g(self): ...\ndef h(): ...\nx = 1\n"
    )
    assert symbols_of(str(path)) == ["A", "A.f", "A.B", "A.B.g", "h"]


def test_a_file_that_does_not_parse_is_fatal_and_says_where(tmp_path: Path) -> None:
    for path in write_broken(tmp_path):
        with pytest.raises(Fatal, match=r"not valid Python: .* \(line 1\)"):
            symbols_of(str(path))
    (tmp_path / "null.py").write_bytes(b"x = 1\0")
    with pytest.raises(Fatal, match="not valid Python"):
        symbols_of(str(tmp_path / "null.py"))
    with pytest.raises(Fatal, match="the file is gone"):
        symbols_of(str(tmp_path / "none.py"))


@pytest.mark.parametrize(
    ("error", "word"),
    [(None, "success"), (Fatal("no"), "fatal"), (Throttled("wait"), "throttled"), (OSError(), "retry")],
)
def test_each_run_writes_its_start_and_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, word: str
) -> None:
    monkeypatch.setenv(JOURNAL_VARIABLE, str(tmp_path / "journal"))
    with contextlib.suppress(type(error)), journaled("index", "/a.py", Context(id="t/0/1", fence=9, attempt=2)):
        if error is not None:
            raise error
    lines = DemoFollower(tmp_path / "journal").more()
    assert [(line.word, line.id, line.fence, line.attempt) for line in lines] == [
        ("start", "t/0/1", 9, 2),
        (word, "t/0/1", 9, 2),
    ]


def test_how_they_are_declared() -> None:
    assert (index.spec.isolation, summarise.spec.priority.label) == ("process", "reporting")
    assert index.spec.priority < summarise.spec.priority


def test_the_listing_of_the_standard_library() -> None:
    names = python_files(standard_library())
    assert "ast.py" in names and "json/decoder.py" in names
    assert not [name for name in names if "site-packages" in name]
    assert names == python_files(standard_library())


def test_a_shorter_run_is_spread_over_all_files_and_linked(tmp_path: Path) -> None:
    names = python_files(standard_library())
    chosen = spread(names, 40)
    assert len(set(chosen)) == 40 and len(spread(names, 10**6)) == len(names)
    assert python_files(link(standard_library(), chosen, tmp_path / "stdlib")) == sorted(chosen, key=_walked)


def _walked(name: str) -> tuple[list[str], int, str]:
    """The order of a walk: the files of a folder before its folders."""
    *folders, last = name.split("/")
    return folders, 0, last
