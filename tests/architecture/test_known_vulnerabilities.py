"""Known vulnerabilities of dependencies: the verdicts of `make check` and `make audit` on the database's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import known_vulnerabilities as known
import pytest

CLEAN = {"name": "orjson", "version": "3.11.0", "vulns": []}
UNKNOWN = {"name": "own", "skip_reason": "Dependency not found on PyPI and could not be audited: own (1.0)"}


def vulnerable(*fixes: str) -> dict[str, Any]:
    found = {"id": "PYSEC-2026-1", "fix_versions": list(fixes), "aliases": ["CVE-2026-1"], "description": "bad"}
    return {"name": "yaml", "version": "1.0", "vulns": [found]}


def said(*packages: dict[str, Any], required: bool = False) -> tuple[bool, str]:
    return known.verdict([known.read({"dependencies": packages}, "a.lock")], required=required)


def test_a_known_vulnerability_fails_and_names_what_mends_it() -> None:
    for required in (True, False):
        holds, text = said(CLEAN, vulnerable("1.1", "2.0"), UNKNOWN, required=required)
        assert not holds
        assert "a.lock: yaml 1.0 has PYSEC-2026-1, mended in 1.1, 2.0: raise it and run `make lock`" in text
    assert "mended in no version yet" in said(vulnerable())[1]


@pytest.mark.parametrize("id", ["PYSEC-2026-1", "CVE-2026-1"])
def test_what_was_accepted_with_a_reason_does_not_fail(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "ACCEPTED", {id: "no YAML of others is read"})
    assert said(CLEAN, vulnerable()) == (True, "Known vulnerabilities: none in 2 pinned packages")


def test_a_database_that_does_not_answer_fails_where_the_answer_is_required_alone() -> None:
    # Given that no package is known, or that nothing could be asked
    for audits in ([known.read({"dependencies": [UNKNOWN]}, "a.lock")], ["the database could not be asked: gone"]):
        # Then `make check` goes on and says so, and `make audit` fails
        holds, text = known.verdict(audits, required=False)
        assert holds and "no package was looked up" in text
        assert not known.verdict(audits, required=True)[0]


def test_packages_that_the_database_does_not_know_are_named() -> None:
    many = [UNKNOWN | {"name": f"own-{n}"} for n in range(5)]
    holds, text = said(CLEAN, *many)
    assert holds
    assert "1 pinned packages were looked up, not all" in text and "own-0, own-1, own-2 and 2 more" in text


def test_a_tool_that_cannot_be_run_to_its_end_is_no_clean_answer(tmp_path: Path) -> None:
    # Given a tool that ends with a connection error and writes no report
    tool = tmp_path / "bin" / "pip-audit"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'ConnectionError: no route' >&2\nexit 1\n")
    tool.chmod(0o755)
    # Then it says why
    assert known.audited(tmp_path, "a.lock") == "the database could not be asked: ConnectionError: no route"
