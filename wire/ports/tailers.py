"""The port for tailers and their sources: paused, moved, audited."""

from __future__ import annotations

from typing import Protocol

from ...model.audit import Audit
from ...model.drop import DropRow
from ...model.gate import Gate
from ...model.seek import Move, Seek


class TailerPort(Protocol):
    """The tailers that a gateway reaches. All raise InvalidRequest for an unknown one."""

    async def pause_tailer(self, gate: Gate) -> str:
        """Pauses or resumes the tailer of `gate.source`, wherever it runs; says so where it does not run beside the
        gateway, else nothing."""

    async def seek_tailer(self, seek: Seek) -> list[Move]:
        """Moves the checkpoint of a paused or stopped tailer, or says what that would do."""

    async def audit(
        self, tailer: str, partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]:
        """What became of everything that a tailer's source had, by partition; `span`: of the positions from its first
        to before its second."""

    async def drops(self, tailer: str = "", limit: int = 100, skip: int = 0) -> list[DropRow]:
        """What of a tailer's stream, or of all, was passed without being run, by tailer, partition and position. At
        most 1000 ranges; a limit of 0: as many."""
