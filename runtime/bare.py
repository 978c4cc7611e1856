"""A bare interpreter that runs one file of this folder without the rest of the platform: for what must cost little,
start soon, and be passed by when somebody ends the worker's processes by their name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: Where it finds these files, by a name of their own: that of the platform is not among its arguments.
_HOME = "LEASE_GUARD_HOME"
_CODE = f"""import os, sys
watch = type(sys)("watch")
watch.__path__ = [os.environ.pop("{_HOME}")]
sys.modules["watch"] = watch
from watch.{{}} import main
main()"""


def command(file: str, *arguments: str) -> list[str]:
    """Runs `main` of `FILE.py`."""
    # That of a virtual environment stands in a folder that may bear our name, and adds nothing that is needed.
    interpreter = getattr(sys, "_base_executable", "") or sys.executable
    return [interpreter, "-I", "-S", "-c", _CODE.format(file), *arguments]


def environment() -> dict[str, str]:
    """What it needs besides. What it starts in turn does not inherit it."""
    return {**os.environ, _HOME: str(Path(__file__).parent)}
