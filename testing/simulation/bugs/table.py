"""The rules of the leases and the planted mistakes that break each: lines of docs/leases.md, generated.

`python -m tailrace.testing.simulation.bugs.table` writes them; `--check` only says whether one is stale (exit status
1). Every mistake is proven by tests/simulation/test_planted_bugs.py: it is found, by the promise that is named.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import tailrace

from . import BREACHES

#: L1 to L20, as docs/leases.md numbers them.
LAWS = [f"L{number}" for number in range(1, 21)]
PAGE = Path(tailrace.__path__[0]) / "docs" / "leases.md"
#: A rule's heading, and the line of its mistakes.
_RULE = re.compile(r"^(### (L\d+): .*?^- \*Broken by:\* )[^\n]*$", re.MULTILINE | re.DOTALL)


def rules() -> list[str]:
    """The rules that have a line for their mistakes on the page, in its order."""
    return [found[2] for found in _RULE.finditer(PAGE.read_text(encoding="utf-8"))]


def _mistakes(law: str) -> str:
    found: dict[str, list[str]] = {}
    for name, breach in BREACHES.items():
        if breach.law == law:
            found.setdefault(breach.by, []).append(name)
    return "; ".join(f"**{by}**: {', '.join(names)}" for by, names in sorted(found.items()))


def _fresh() -> str:
    """The page with the mistakes as they are now."""
    return _RULE.sub(lambda found: found[1] + _mistakes(found[2]), PAGE.read_text(encoding="utf-8"))


def stale() -> bool:
    """Whether the page names other mistakes, or not every rule has its line."""
    return rules() != LAWS or PAGE.read_text(encoding="utf-8") != _fresh()


def main() -> None:
    """Writes the lines, or with --check only says whether one is stale."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(_fresh(), encoding="utf-8")
    if stale():
        sys.exit("stale: docs/leases.md; run python -m tailrace.testing.simulation.bugs.table")


if __name__ == "__main__":
    main()
