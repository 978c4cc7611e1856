"""Labels that every worker has: facts of its machine and its Python."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from .machine import usable_processors


def own_labels() -> Mapping[str, str]:
    """The labels, by name: `os` (linux, darwin), `arch` (x86_64, arm64), `python` (3.12.4), `cpus` that it may use, and
    `host`."""
    found = {
        "os": platform.system().lower(),
        "arch": platform.machine().lower(),
        "python": platform.python_version().partition("+")[0].partition("rc")[0],
        "cpus": str(usable_processors()),
        "host": platform.node(),
    }
    return {name: value for name, value in found.items() if value}
