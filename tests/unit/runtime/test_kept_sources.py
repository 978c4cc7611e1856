"""Sources that a worker keeps: what is not on the disk any more as it was is loaded as it was."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.runtime import kept_sources
from tailrace.runtime.kept_sources import KeptFinder, KeptSources
from tailrace.runtime.loader import load_functions


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package, on the path of imports."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "kept_package").mkdir()
    (tmp_path / "kept_package/__init__.py").write_text("from .part import WORD\n")
    (tmp_path / "kept_package/part.py").write_text("WORD = 'old'\n")
    yield tmp_path
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0].startswith("kept_")]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, KeptFinder)]
    importlib.invalidate_caches()


def loaded(*names: str) -> KeptSources:
    return KeptSources([importlib.import_module(name) for name in names])


def test_nothing_is_given_while_the_files_are_as_they_were(place: Path) -> None:
    kept = loaded("kept_package", "kept_package.part")
    assert kept.changed() == []
    # Also when one was written again, with the same text
    (place / "kept_package/part.py").write_text("WORD = 'old'\n")
    os.utime(place / "kept_package/part.py", ns=(1, 1))
    assert kept.changed() == []


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_what_is_not_there_any_more_is_loaded_as_it_was(
    place: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a package of which one file was changed, or is gone
    kept = loaded("kept_package", "kept_package.part")
    if how == "changed":
        (place / "kept_package/part.py").write_text("WORD = 'new'  # and longer\n")
    else:
        (place / "kept_package/part.py").unlink()
    rows = kept.changed()
    assert [row[0] for row in rows] == ["kept_package.part"]
    # When another process loads it
    forget()
    kept_sources.serve(rows)
    # Then it is what it was, and it was said once that the file is another
    assert importlib.import_module("kept_package").WORD == "old"
    assert kept.changed() == rows
    assert caplog.text.count("changed since this worker started") == 1


def test_a_package_that_is_gone_as_a_whole_is_loaded_as_it_was(place: Path) -> None:
    kept = loaded("kept_package", "kept_package.part")
    for file in (place / "kept_package").glob("*.py"):
        file.unlink()
    rows = kept.changed()
    forget()
    kept_sources.serve(rows)
    assert importlib.import_module("kept_package").WORD == "old"


def test_a_module_that_is_named_by_its_file_is_loaded_as_it_was(place: Path) -> None:
    file = place / "kept_tasks.py"
    file.write_text("import tailrace\n\n\n@tailrace.function\ndef first() -> None: ...\n")
    load_functions([str(file)])
    kept = KeptSources([sys.modules["kept_tasks"]])
    file.write_text("def (:\n")
    rows = kept.changed()
    forget()
    kept_sources.serve(rows)
    assert {*load_functions([str(file)]).functions} == {"first"}


def test_libraries_and_the_platform_itself_are_not_kept(place: Path) -> None:
    kept = KeptSources([pytest, importlib, kept_sources])
    assert kept._modules == []
