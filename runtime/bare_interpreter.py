"""A bare interpreter that runs one file of this folder without the rest of the platform: for helper processes that must
cost little, start soon, and be passed by when somebody ends the worker's processes by their name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: The variable that names this folder: so the platform's name is not among the arguments of the process.
_HOME = "LEASE_GUARD_HOME"
_CODE = f"""import os, sys
watch = type(sys)("watch")
watch.__path__ = [os.environ.pop("{_HOME}")]
sys.modules["watch"] = watch
from watch.{{}} import main
main()"""


def command(file: str, *arguments: str) -> list[str]:
    """The command that runs `main` of `FILE.py` in this folder."""
    # A virtual environment's interpreter stands in a folder that may bear our name, and adds nothing that is needed.
    interpreter = getattr(sys, "_base_executable", "") or sys.executable
    return [interpreter, "-I", "-S", "-c", _CODE.format(file), *arguments]


def environment() -> dict[str, str]:
    """The environment of such a process. Programs that it starts do not inherit the variable added here."""
    return {**os.environ, _HOME: str(Path(__file__).parent)}
