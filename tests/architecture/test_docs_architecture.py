"""The pages of docs/ tell the truth: every rule is in the index, every path, test and heading they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tailrace

ROOT = Path(tailrace.__file__).parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
#: Pages about the code, not about its use: what they name in code marks is looked for.
INSIDE = [DOCS / name for name in ("architecture.md", "laws.md", "leases.md", "adoption.md", "long-items.md")]
INSIDE += [DOCS / "simulation.md", *sorted((DOCS / "decisions").glob("[0-9]*.md"))]
DECISION = ["Context", "Decision", "Consequences", "What would change it"]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_every_rule_is_in_the_index() -> None:
    """The index is generated; this holds that no room of rules is left out of it."""
    listed = set(
        re.findall(r"^\| .* \| \[.*\]\(../../(.*)\) \| \S.* \|$", text_of(DOCS / "reference/rules.md"), re.MULTILINE)
    )
    rules = {str(path.relative_to(ROOT)) for path in ROOT.glob("*/rules/*.py") if path.name != "__init__.py"}
    assert len(rules) > 60
    assert rules <= listed, "name their rooms in tailrace.reference"


@pytest.mark.parametrize("page", INSIDE, ids=lambda page: page.stem)
def test_every_path_it_names_exists(page: Path) -> None:
    paths = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text_of(page)))
    assert [path for path in sorted(paths) if path != "rules/" and not (ROOT / path).exists()] == []


def test_every_module_they_name_exists() -> None:
    rooms = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
    wrong = [
        f"{page.name}: {path}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for path in re.findall(rf"`((?:{rooms})/[\w./]+\.(?:py|sql|proto))", text_of(page))
        if not (ROOT / path).is_file()
    ]
    assert wrong == []


def test_every_test_they_name_exists() -> None:
    known = {
        name
        for folder in ("tests", "testing")
        for path in (ROOT / folder).rglob("*.py")
        for name in (path.name, path.stem, *re.findall(r"def (test_\w+)", text_of(path)))
    }
    wrong = [
        f"{page.name}: {name}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`(test_\w+(?:\.py)?)`", text_of(page))
        if name not in known
    ]
    assert wrong == []


def test_every_link_meets_its_heading() -> None:
    headings = {page: {slug(line) for line in re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)} for page in PAGES}
    wrong = [
        f"{page.relative_to(ROOT)}: {target}#{heading}"
        for page in PAGES
        for target, heading in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", text_of(page))
        if heading not in headings.get((page.parent / target).resolve() if target else page, set())
    ]
    assert wrong == []


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_law_names_its_tests() -> None:
    laws = re.findall(r"^\| (\d+)\. (.*) \| (.*) \|$", text_of(DOCS / "laws.md"), re.MULTILINE)
    assert [int(number) for number, _, _ in laws] == list(range(1, 13))
    for number, _, tests in laws:
        assert "`test_" in tests, f"law {number} names no test"


def test_every_rule_of_the_leases_says_where_it_is_kept() -> None:
    rules = re.findall(r"^### L(\d+): .*?^- \*Where:\* (.*?)$", text_of(DOCS / "leases.md"), re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in rules] == list(range(1, 21))
    assert all("`" in where for _, where in rules)


def test_every_decision_is_a_short_page_of_one_form() -> None:
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        found = re.findall(r"^## (.*)$", text_of(page), re.MULTILINE)
        assert [title for title in found if title != "What was weighed"] == DECISION, page.name
        assert len(text_of(page).splitlines()) <= 70, f"{page.name}: one page, please"


def test_every_kind_of_source_has_its_row() -> None:
    kinds = re.search(r'"tailrace\.sources"\]\n((?:\w.*\n)+)', text_of(ROOT / "pyproject.toml"))
    assert kinds is not None
    rows = re.findall(r"^\| \[`(\w+)`\]\(", text_of(DOCS / "sources" / "README.md"), re.MULTILINE)
    assert sorted(rows) == sorted(re.findall(r"^(\w+) =", kinds[1], re.MULTILINE))
