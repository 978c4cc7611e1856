"""The rules of the leases and the planted mistakes that break each: a table in docs/architecture.md, generated.

`python -m tailrace.testing.simulation.bugs.table` writes it; `--check` only says whether it is stale (exit status 1).
Every line is proven by tests/simulation/test_planted_bugs.py: the mistake is found, by the promise that is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tailrace

from . import BREACHES

#: L1 to L20, as docs/architecture.md numbers them.
LAWS = [f"L{number}" for number in range(1, 21)]
PAGE = Path(tailrace.__path__[0]) / "docs" / "architecture.md"
_HEAD = ["| | mistakes that break it, by the promise that finds them |", "|---|---|"]


def table() -> str:
    """A line per rule: the promises that find its mistakes, and their names."""
    return "\n".join([*_HEAD, *(f"| {law} | {_mistakes(law)} |" for law in LAWS)]) + "\n"


def _mistakes(law: str) -> str:
    found: dict[str, list[str]] = {}
    for name, breach in BREACHES.items():
        if breach.law == law:
            found.setdefault(breach.by, []).append(name)
    return "; ".join(f"**{by}**: {', '.join(names)}" for by, names in sorted(found.items()))


def _page() -> tuple[str, str, str]:
    """The page before its table, the table, and what follows."""
    before, head, rest = PAGE.read_text(encoding="utf-8").partition("\n".join(_HEAD))
    lines, _, after = rest.partition("\n\n")
    return before, f"{head}{lines}\n", f"\n{after}"


def stale() -> bool:
    """Whether the page has another table."""
    return _page()[1] != table()


def main() -> None:
    """Writes the table, or with --check only says whether it is stale."""
    if "--check" in sys.argv[1:]:
        if stale():
            sys.exit("stale: docs/architecture.md; run python -m tailrace.testing.simulation.bugs.table")
        return
    before, _, after = _page()
    PAGE.write_text(before + table() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
