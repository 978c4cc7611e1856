"""Code that is there for parts of the version before, and the version that takes it out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import tailrace

ROOT = Path(tailrace.__path__[0])
#: The label: "Goes with 1.2.0: why it is there" in a comment, named by the version in whose sources it is no more.
LABEL = re.compile(r"(?:#|--|//) Goes with (\d+)\.(\d+)\.0: \S")
#: Words of compatibility that have no label.
UNLABELLED = re.compile(
    r"\b(?:older|earlier) version of tailrace|"
    r"\b(?:of|by) an (?:older|earlier) version\b|"
    r"\ban (?:older|earlier) (?:tailer|scheduler|worker|gateway|supervisor|server of stores)\b"
)
ROOMS = ("model", "wire", "foundation", "sdk", "stores", "tailers", "scheduler", "delay_service", "runtime", "gateway")


def sources() -> dict[str, str]:
    """The sources of the installed packages, without generated code and without steps of a schema, which stay."""
    found = (path for room in (*ROOMS, "assembly") for path in (ROOT / room).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if path.suffix in (".py", ".proto") and "_pb2" not in path.name
    }


def test_nothing_stays_for_a_version_that_is_not_beside_this_one() -> None:
    # Given the version of this tree, and everything that is there for the one before
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    now = tuple(int(part) for part in version.split(".")[:2])
    labels = [(file, (int(a), int(b))) for file, text in sources().items() for a, b in LABEL.findall(text)]
    # Then none of it should have gone
    assert labels
    assert [f"{file}: goes with {a}.{b}.0" for file, (a, b) in labels if now >= (a, b)] == []


def test_what_is_there_for_another_version_says_when_it_goes() -> None:
    wrong = [f"{file}: {found[0]}" for file, text in sources().items() if (found := UNLABELLED.findall(text))]
    assert wrong == [], "label it: `# Goes with MAJOR.MINOR.0: why it is there`"
