"""Progress of a replay, by the stores: also of a replay that another process reads, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...model.audit import Fate
from ...model.replay import OVER, READING, Progress, Replay, ReplayState, counted
from ...stores.checkpoints.checkpoints import Checkpoints
from ...stores.ledger.ledger import Ledger
from ...stores.ownership.ownership import Ownership
from ..registry import Environment
from ..takeover.epoch import WHOLE
from .plan import book_of


class ReplayProgress:
    """Reads the progress of replays from the stores. `here` returns the state of a replay that this process runs
    itself, for people."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        ledger: Ledger,
        ownership: Ownership,
        here: Callable[[Replay], str] = lambda replay: "",
    ) -> None:
        self._checkpoints = checkpoints
        self._ledger = ledger
        self._ownership = ownership
        self._here = here

    async def of(self, replay: Replay) -> Progress:
        """The progress of a replay, in whatever state it is."""
        if replay.state in OVER:
            return Progress(replay, replay.counts, replay.detail)
        if replay.state is ReplayState.ASKED:
            return Progress(replay, {}, f"no process that runs the tailer {replay.tailer!r} has taken it up yet")
        counts = await _counted(replay, self._checkpoints, self._ledger)
        return Progress(replay, counts, self._here(replay) or await self._read_by(replay))

    async def _read_by(self, replay: Replay) -> str:
        if replay.state not in READING:
            return ""
        row = await self._ownership.read(replay.name, WHOLE)
        if row is not None and row.holder:
            host, _, rest = row.holder.partition(":")
            return f"read by the process {rest.partition(':')[0]} on {host}"
        return (
            f"no process reads it: none runs a tailer {replay.tailer!r} now; start one, put its file back, or cancel "
            "this replay"
        )


async def counts_of(replay: Replay, stores: Environment) -> dict[str, int]:
    """Number of a replay's items that ended in each way, or wait for a retry."""
    return await _counted(replay, stores.checkpoints, stores.ledger)


async def _counted(replay: Replay, checkpoints: Checkpoints, ledger: Ledger) -> dict[str, int]:
    tally = Counter[Fate]()
    for mark in (await checkpoints.load(replay.name)).values():
        if (book := book_of(mark, replay.sparse)) is not None:
            tally.update({fate: book.tally[fate] for fate in Fate})
            tally.update(book.ahead())
    delayed = (await ledger.delayed(replay.name)).values()
    return counted(
        tally,
        sum(one.waiting for one in delayed),
        sum(one.done for one in delayed),
        sum(one.dead for one in delayed),
    )
