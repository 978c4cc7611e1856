"""The end of an executor: it chooses from the kernel's list the processes that end with it, those that it started.

A number in that list is only a number: once a process and all of its group and session are gone, it is given to others.
So a process counts by where it stands (session, group, parent) only as long as it is certain whose number that is, and
by the executor's mark in its environment always. A process that left all four, a new session whose parent has ended and
whose environment was emptied, is not found.

The guard imports this without the rest of the platform: nothing is imported here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: Seconds that a supervisor gets to end what a dead executor leaves, as it does for every one: it is the parent.
ITS_PARENTS_TURN = 0.2
NEVER = float("inf")


class Process:
    """One line of the kernel's list. `start` is in its ticks since boot, `mark` that of its environment (empty: it has
    none, or nobody may read it); `dead`: it has ended, and nobody has asked how."""

    __slots__ = ("dead", "group", "mark", "parent", "pid", "session", "start")

    def __init__(
        self, pid: int, parent: int, group: int, session: int, start: int, mark: str = "", dead: bool = False
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start
        self.mark = mark
        self.dead = dead


class Ward:
    """An executor that is watched: a leader of a session and a group.

    mark   the text that every process it starts has in its environment
    pid    0: not known
    start  when it was started, ticks; 0: not known, so its number says nothing
    seen   the last moment at which its number was certainly its own, ticks
    """

    __slots__ = ("mark", "pid", "seen", "start")

    def __init__(self, mark: str, pid: int = 0, start: int = 0, seen: float = 0.0) -> None:
        self.mark = mark
        self.pid = pid
        self.start = start
        self.seen = seen


def due_at(deadline: float, died: float, alone: bool, now: float) -> float:
    """The moment at which a guard ends an executor with all it started (now or earlier: at once): its deadline (0:
    there is nothing in it), or its death (`died`, 0: it lives) and its parent's turn after it. `alone`: there is no
    supervisor any more, so nobody else does."""
    if alone:
        return now
    return min(deadline or NEVER, died + ITS_PARENTS_TURN if died else NEVER)


def theirs(processes: Sequence[Process], ward: Ward, spared: Collection[int]) -> list[Process]:
    """Processes that end with a ward, and still run. `spared` are numbers that are never touched, nor followed."""
    listed = [process for process in processes if process.pid not in spared]
    seen = ward.seen
    if any(process.pid == ward.pid and process.start == ward.start for process in processes):
        seen = NEVER

    def first(process: Process) -> bool:
        if ward.mark and process.mark == ward.mark:
            return True
        if not ward.start or not ward.start <= process.start <= seen:
            return False
        if process.pid == ward.pid:
            return process.start == ward.start
        return ward.pid in (process.session, process.group, process.parent)

    return _with_kin([process for process in listed if first(process)], listed)


def below(processes: Sequence[Process], pid: int, spared: Collection[int]) -> list[Process]:
    """Processes that descend from this one, and still run."""
    listed = [process for process in processes if process.pid not in spared and process.pid != pid]
    return _with_kin([process for process in listed if process.parent == pid], listed)


def _with_kin(found: list[Process], listed: list[Process]) -> list[Process]:
    """Processes found, with their children, with the groups and sessions that they lead, and so on, as far as they run.
    All of them are in the list just now, so their numbers are theirs."""
    led = {process.pid for process in found}
    rest = [process for process in listed if process.pid not in led]
    while rest:
        more = [each for each in rest if each.parent in led or each.session in led or each.group in led]
        if not more:
            break
        led.update(process.pid for process in more)
        rest = [process for process in rest if process.pid not in led]
    return [process for process in listed if process.pid in led and not process.dead]
