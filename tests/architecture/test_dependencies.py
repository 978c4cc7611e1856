"""The audit of dependencies that needs no network: the installed packages are those that the locks pin, each by version
and hash, and nothing comes from elsewhere. `make check` asks the database of known vulnerabilities
(tests/known_vulnerabilities.py)."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tailrace

ROOT = Path(tailrace.__file__).parent
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!-]+)((?: --hash=sha256:[0-9a-f]{64})+)")


def pins(name: str) -> dict[str, str]:
    """Packages and versions of a lock."""
    found = {}
    for line in (ROOT / name).read_text().replace(" \\\n", "").splitlines():
        text = re.sub(r"\s+", " ", line.partition("#")[0]).strip()
        if not text:
            continue
        match = _PIN.fullmatch(text)
        assert match is not None, f"{name}: {text[:80]!r} is no version with its hashes"
        found[canonicalize_name(match[1])] = match[2]
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_versions_with_hashes_and_nothing_else(name: str) -> None:
    assert pins(name)


def test_what_is_installed_is_what_the_lock_pins() -> None:
    wrong = {}
    for name, pinned in pins("requirements.lock").items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue  # of another platform
        if found != pinned:
            wrong[name] = (found, pinned)
    assert not wrong


def test_what_the_wheel_needs_is_in_the_lock_and_allows_what_that_pins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {})
    pinned = pins("requirements.lock")
    given = [line.partition("#")[0].strip() for line in (ROOT / "requirements.in").read_text().splitlines()]
    for text in [*filter(None, given), *(each for some in extras.values() for each in some)]:
        needed = Requirement(text)
        name = canonicalize_name(needed.name)
        if name == "tailrace":
            continue
        assert needed.url is None, f"{text} comes from an address"
        assert needed.specifier, f"{text} takes any version"
        assert name in pinned, f"{name} is not in the lock"
        assert needed.specifier.contains(pinned[name], prereleases=True), f"{text}, and the lock has {pinned[name]}"


def test_locks_agree_about_what_they_share() -> None:
    base = pins("requirements.lock")
    for name in ("requirements-image.lock", "requirements-rivals.lock"):
        other = {package: pinned for package, pinned in pins(name).items() if package in base}
        assert other == {package: base[package] for package in other}, name
