"""Files of tests rest in memory where there is room: most of the time that they wait, they wait for a disk to sync.

No test asks whether a machine's disk keeps what it has synced: processes are killed, their machine is not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

#: Linux's file system in memory, and the bytes that must be free in it: containers often have very little.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30


def rest_in_memory() -> None:
    """Makes the folder in memory the one for temporary files of this process, and of all that it starts. TMPDIR decides
    when it is set."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # it was looked up before
