"""The function that every rival runs."""

from __future__ import annotations

from pathlib import Path

from .settings import settings
from .tally import Tally

_TALLY = Tally(Path(settings().tally))


def noop() -> None:
    """Counts itself."""
    _TALLY.add()
