"""Starts as the stores see them: no run starts of an item that is over, or that its checkpoint has passed, or that was
handed out again since; and an item that was out when its owner died has its process for itself."""

from __future__ import annotations

import msgspec

from ...model.claim import State
from ...model.fence import FENCE_BITS
from ...model.ledger import TERMINAL, LedgerEntry
from ...tailers.rules.frontier import decode as decode_ahead
from ...tailers.rules.ledger import is_marked
from .journal import Execution, Journal
from .plan import Plan
from .sqlite_disk import Disk

_TASK = "SELECT state, fence FROM tasks WHERE id = ?"
_MARK = "SELECT position, ahead FROM checkpoint_marks WHERE source = ? AND partition = ?"
_ROW = "SELECT entry FROM ledger WHERE source = ? AND partition = ? AND position = ?"

_entry = msgspec.json.Decoder(LedgerEntry).decode


class StartsAudit:
    """Asks the stores about each run as it begins."""

    def __init__(self, plan: Plan, disk: Disk, journal: Journal) -> None:
        self._disk = disk
        self._journal = journal
        self._restores = any(fault.kind == "restore" for fault in plan.faults)
        self._alone: dict[str, Execution] = {}  # by process: what runs there by itself
        journal.begins.append(self._begins)

    def _begins(self, run: Execution) -> None:
        why = self._of_stream(run, *run.id.split("/")) if "/" in run.id else self._of_queue(run)
        if why:
            self._journal.wrong(f"started: {run.id} starts in {run.where} under {run.fence}, but {why}")
        self._beside(run)

    def _beside(self, run: Execution) -> None:
        """Checks that a suspect runs alone (L14)."""
        there = [each for each in self._journal.live.values() if each.where == run.where]
        if self._is_marked(run):
            self._alone[run.where] = run
        alone = self._alone.get(run.where)
        if there and alone in (run, *there):
            self._journal.wrong(f"beside others: {run.id} starts in {run.where} with {there[0].id} there")

    def _is_marked(self, run: Execution) -> bool:
        """Whether the owner that handed this out, or one before it, had marked it as out when its owner died."""
        if "/" not in run.id:
            return False
        source, partition, position = run.id.split("/")
        rows = self._disk.rows("state", _ROW, (source, partition, int(position)))
        told = run.fence >> FENCE_BITS  # the second of its hand-out; an epoch is the second of its take
        return any(is_marked(row) and row.epoch <= told for row in (_entry(*each) for each in rows))

    def _of_queue(self, run: Execution) -> str:
        rows = self._disk.rows("queue", _TASK, (int(run.id, 16),))
        if not rows:
            return "" if self._restores else "its queue does not have it"
        state, fence = rows[0]
        if state >= State.SUCCESS:
            return f"its queue has it as {State(state).label}"
        if not self._restores and run.fence > self._journal.cancelled.get(run.id, run.fence):
            return "it had been cancelled before it was handed out"
        return f"it was handed out again under {fence}" if fence > run.fence else ""

    def _of_stream(self, run: Execution, source: str, partition: str, position: str) -> str:
        rows = self._disk.rows("state", _ROW, (source, partition, int(position)))
        if rows:
            entry = _entry(rows[0][0])
            if entry.place in TERMINAL:
                return f"its row says that it is {entry.place.label}"
            return f"it was handed out again under {entry.fence}" if entry.fence > run.fence else ""
        if run.id in self._journal.in_line:
            return ""
        for mark, ahead in self._disk.rows("state", _MARK, (source, partition)):
            bits, index = decode_ahead(ahead), int(position) - mark
            if index < 0 or (index < len(bits) and bits[index]):
                return f"the checkpoint of {source} at {mark} has passed it, and no row stands for it"
        return ""
