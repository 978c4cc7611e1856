"""Promises that were found broken in use. Each test names the point of the review that found it, and acts through
public faces alone, so that this folder can be copied into a clone of an older tree, to see what was wrong there."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes.token_door import door, stores

__all__ = ["door", "stores"]


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known here, for clones whose configuration does not have it."""
    config.addinivalue_line("markers", "trust(point): a promise that was found broken in use")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a test of this folder that names no point."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("trust") is None:
            raise pytest.UsageError(f"{item.nodeid} names no point: mark it with @pytest.mark.trust(point=…)")
