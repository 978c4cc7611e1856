"""A process that a function under test starts: it writes signs of life in the name of its run, for as long as it lives,
whatever becomes of the process that started it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from .journal import TICK, FaultJournal

#: Seconds between two signs of life of a run.
TICK_EVERY = 0.1


def command(journal: Path, id: str, fence: int, attempt: int, run: tuple[int, int], seconds: float) -> list[str]:
    """The command that starts it. `run`: the process that runs the function, and that one's parent."""
    values = (journal, id, fence, attempt, *run, seconds)
    return [sys.executable, "-m", __name__, *map(str, values)]


def main(folder: str, id: str, fence: int, attempt: int, run: tuple[int, int], seconds: float) -> None:
    """Writes signs of life for so long."""
    journal = FaultJournal(Path(folder), run)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        journal.write(TICK, id, fence, attempt)
        time.sleep(min(TICK_EVERY, left))


if __name__ == "__main__":
    _folder, _id, _fence, _attempt, _pid, _parent, _seconds = sys.argv[1:]
    main(_folder, _id, int(_fence), int(_attempt), (int(_pid), int(_parent)), float(_seconds))
