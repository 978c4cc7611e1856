"""Bindings of a node's logs to a state on a server: THE rule of who may use a log under the state's checkpoints.

A binding is one text at the server: the node, the run that holds it, and the marks of the log's file. It is held by a
lease: its run raises `beat` now and then, and another place may take it over when nobody did for so long. A file's mark
is another one in each run, so that of two copies of a folder only the one goes on that went on first.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path

from .data_dir import LOCK_NAME
from .node_id import same_node

#: Seconds after which a binding that nobody renewed is free, and between two renewals.
LEASE, RENEWAL = 20.0, 5.0


class BindingVerdict(Enum):
    """The answer to a node that wants a binding."""

    FREE = "free"
    ANOTHER_NODE = "another node"
    HELD = "held"  # by a run elsewhere, which may be dead
    LEFT_BEHIND = "left behind"  # another copy of the log went on since


@dataclass(frozen=True)
class LogBinding:
    """A binding. `run`: the process that holds it; empty: none. `place`: where that runs, see `place_of`. `marks`:
    those that the log's file may have; none: any."""

    node: str
    run: str = ""
    place: str = ""
    beat: int = 0
    marks: tuple[str, ...] = ()

    def text(self) -> str:
        """The text at the server. It begins with the node's name, by which former versions know it."""
        held = {name: value for name, value in asdict(self).items() if name != "node"}
        return f"{self.node}\t{json.dumps(held, sort_keys=True)}"

    def renewed(self) -> LogBinding:
        """The binding with its lease begun anew."""
        return replace(self, beat=self.beat + 1)


def binding_of(text: str) -> LogBinding:
    """The binding of a text; one of a former version has only the node."""
    node, _, held = text.partition("\t")
    given = json.loads(held) if held else {}
    return LogBinding(node, **{**given, "marks": tuple(given.get("marks", ()))})


def verdict(held: LogBinding, wanted: LogBinding, mark: str, unchanged: float) -> BindingVerdict:
    """Whether a run may take a binding. `mark`: that of its file now; `unchanged`: seconds for which it has seen the
    binding as it is."""
    if not same_node(held.node, wanted.node):
        return BindingVerdict.ANOTHER_NODE
    if held.run and held.run != wanted.run and held.place != wanted.place and unchanged < LEASE:
        return BindingVerdict.HELD
    if held.marks and mark not in held.marks:
        return BindingVerdict.LEFT_BEHIND
    return BindingVerdict.FREE


def place_of(folder: Path) -> str:
    """The place of a data directory that this process has locked: two processes of one place never run at once, since
    they would have the same lock."""
    about = (folder / LOCK_NAME).stat()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = socket.gethostname()
    return f"{boot} {about.st_dev} {about.st_ino}"
