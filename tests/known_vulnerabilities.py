"""Known vulnerabilities of the packages in the locks: `make check` asks their database, where that answers.

What is found fails the check. A machine that cannot reach the database (no internet, or an index of its own) is told
that nothing was looked up, and goes on: `make audit` fails there instead, for whoever has to know.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
#: Locks of all that runs somewhere: in development with every extra, and in the image.
LOCKS = ("requirements.lock", "requirements-image.lock")
#: Vulnerabilities that were looked at and do not reach tailrace, each with the reason: {"PYSEC-2026-1": "why"}.
ACCEPTED: Mapping[str, str] = {}
#: Seconds in which the tool is installed, and in which the database answers for a lock; it asks for one package at a
#: time, 0.1 to 0.3 s each.
INSTALL, ANSWER = 180.0, 180.0


class Audit(NamedTuple):
    """The answers of the database for a lock: lines for people about vulnerabilities, the number of packages that it
    knows, and the packages that it does not."""

    found: Sequence[str]
    told: int
    unknown: Sequence[str]


def read(report: Mapping[str, Any], lock: str) -> Audit:
    """The audit that pip-audit writes of a lock as JSON."""
    found: list[str] = []
    told, unknown = 0, []
    for package in report["dependencies"]:
        if "skip_reason" in package:
            unknown.append(package["name"])
            continue
        told += 1
        for each in package["vulns"]:
            if ACCEPTED.keys() & {each["id"], *each["aliases"]}:
                continue
            mended = ", ".join(each["fix_versions"])
            do = f"mended in {mended}: raise it and run `make lock`" if mended else "mended in no version yet"
            found.append(f"{lock}: {package['name']} {package['version']} has {each['id']}, {do}")
    return Audit(found, told, unknown)


def verdict(audits: Sequence[Audit | str], *, required: bool) -> tuple[bool, str]:
    """Whether the check holds, and its text for people; a text among the audits says why there is none."""
    found = [line for audit in audits if isinstance(audit, Audit) for line in audit.found]
    if found:
        accept = "What does not reach tailrace goes into ACCEPTED in tests/known_vulnerabilities.py, with the reason."
        return False, "\n".join([*dict.fromkeys(found), accept])
    told = sum(audit.told for audit in audits if isinstance(audit, Audit))
    missing = [audit for audit in audits if isinstance(audit, str)]
    names = sorted({name for audit in audits if isinstance(audit, Audit) for name in audit.unknown})
    if names:
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        missing.append(f"the database that this machine reaches does not know {some}")
    if missing:
        done = f"{told} pinned packages were looked up, not all" if told else "no package was looked up"
        return not required, f"Known vulnerabilities: {done}: {'; '.join(dict.fromkeys(missing))}"
    return True, f"Known vulnerabilities: none in {told} pinned packages"


def installed(folder: Path) -> str:
    """Installs pip-audit in an environment of its own. Returns why it could not; empty: it is there."""
    lock = ROOT / "requirements-audit.lock"
    ready = folder / ".ready"
    if ready.exists() and ready.stat().st_mtime >= lock.stat().st_mtime:
        return ""
    venv.create(folder, with_pip=True, clear=True)
    words = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "1", "install", "--require-hashes")
    try:
        done = run(INSTALL, folder / "bin" / "python", *words, "-r", lock)
    except subprocess.TimeoutExpired:
        return f"pip-audit was not installed within {INSTALL:.0f} s"
    if done.returncode:
        return f"pip-audit could not be installed: {last_line(done.stderr)}"
    ready.touch()
    return ""


def audited(folder: Path, lock: str) -> Audit | str:
    """Asks the database for each package of a lock. Returns the answers, or why it could not be asked."""
    words = (
        "--disable-pip",
        "--require-hashes",
        "--format",
        "json",
        "--aliases",
        "on",
        "--desc",
        "off",
        "--progress-spinner",
        "off",
    )
    try:
        done = run(ANSWER, folder / "bin" / "pip-audit", *words, "-r", ROOT / lock)
    except subprocess.TimeoutExpired:
        return f"the database did not answer for {lock} within {ANSWER:.0f} s"
    try:
        return read(json.loads(done.stdout), lock)
    except ValueError:
        return f"the database could not be asked: {last_line(done.stderr)}"


def run(seconds: float, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=seconds)


def last_line(text: str) -> str:
    """The last line of a tool's output, which says why it ended."""
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


def main(arguments: Sequence[str]) -> int:
    """Runs the check. With `--required` it also fails where nothing could be looked up."""
    folder = ROOT / ".venv" / "audit"
    trouble = installed(folder)
    audits = [trouble] if trouble else [audited(folder, lock) for lock in LOCKS]
    holds, text = verdict(audits, required="--required" in arguments)
    print(text)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
