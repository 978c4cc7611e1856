"""docs/architecture.md tells the truth: every rule is in the index, every path and test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import tailrace

ROOT = Path(tailrace.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/architecture.md has no section {title!r}"
    return found[1]


def test_every_rule_is_in_the_index() -> None:
    """The index is generated; this holds that no room of rules is left out of it."""
    index = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| .* \| \[.*\]\(../../(.*)\) \| \S.* \|$", index, re.MULTILINE))
    rules = {str(path.relative_to(ROOT)) for path in ROOT.glob("*/rules/*.py") if path.name != "__init__.py"}
    assert len(rules) > 60
    assert rules <= listed, "name their rooms in tailrace.reference"


def test_every_path_it_names_exists() -> None:
    paths = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)`", PAGE))
    assert paths
    assert [path for path in sorted(paths) if path != "rules/" and not (ROOT / path).exists()] == []


def test_every_law_names_tests_that_exist() -> None:
    known = {
        name
        for folder in ("tests", "testing")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    laws = re.findall(r"^\| (\d+)\. (.*) \| (.*) \|$", section("The laws and their tests"), re.MULTILINE)
    assert [int(number) for number, _, _ in laws] == list(range(1, 13))
    for number, _, tests in laws:
        assert "`test_" in tests or "not kept yet" in tests, f"law {number} names no test"
    assert sorted(set(re.findall(r"`(test_\w+)`", PAGE)) - known) == []


def test_every_step_of_the_lease_chain_names_a_file() -> None:
    steps = re.findall(r"^\| L(\d+) \| .* \| (.*) \|$", section("The leases"), re.MULTILINE)
    numbers = [int(number) for number, _ in steps]
    assert numbers[:10] == list(range(1, 11)) and numbers == sorted(set(numbers))
    assert all("`" in where for _, where in steps)
