"""The port for tailers and their sources: paused, resumed, moved, audited."""

from __future__ import annotations

from typing import Protocol

from ...model.audit import Audit
from ...model.drop import DropRow
from ...model.gate import Gate
from ...model.seek import ForgetTailer, Move, Seek


class TailerPort(Protocol):
    """Calls about the tailers that a gateway reaches. Every method raises InvalidRequest for an unknown tailer."""

    async def pause_tailer(self, gate: Gate) -> str:
        """Pauses or resumes the tailer of `gate.source`, wherever it runs. Returns a note for people where it does not
        run beside the gateway, else an empty text."""

    async def seek_tailer(self, seek: Seek) -> list[Move]:
        """Moves the checkpoint of a paused or stopped tailer, or shows the moves that would be made (a dry run)."""

    async def forget_tailer(self, order: ForgetTailer) -> str:
        """Forgets a tailer that runs nowhere, with its checkpoints and the notes beside them. Returns the stream of the
        platform's log that it read, whose retention waits for it no more; empty: it read something else."""

    async def audit(
        self, tailer: str, partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]:
        """The audit of a tailer's source, by partition: how every item ended, or where it is. `span`: only positions
        from its first to before its second."""

    async def drops(self, tailer: str = "", limit: int = 100, skip: int = 0) -> list[DropRow]:
        """Ranges of a tailer's stream (empty: of all) that were passed without being run, by tailer, partition and
        position, at most 1000; a limit of 0: 1000."""
