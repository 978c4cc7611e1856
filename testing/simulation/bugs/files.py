"""Mistakes that show when a file is opened again: after its writer ended by itself, or after a power cut."""

from __future__ import annotations

import contextlib
from typing import Any

from ....stores.queue import lease_clock
from ....stores.queue.sqlite.memory import Memory
from ....stores.queue.sqlite.queue import SqliteQueue
from ....stores.sqlite.file import SqliteFile
from ....tailers.pumps.queue_pump import QueuePump
from ....tailers.session import Renewal
from ....tailers.takeover.inherited import Inherited
from ..planting import Bug, bug, instead


@bug
def _leases_go_on_by_a_clock_that_began_anew() -> Bug:
    return instead(lease_clock, "same_run", lambda noted, boot: True)


@bug
def _a_writer_that_ended_leaves_its_memory_as_it_was() -> Bug:
    real, reload = SqliteFile._reload, Memory.reload

    def of_file(self: SqliteFile, connection: Any) -> None:
        if not self._died:
            real(self, connection)

    def of_queue(self: Memory, connection: Any) -> None:
        if not self.loaded:
            reload(self, connection)

    async def close(self: SqliteQueue) -> None:
        """Keeps the memory of the file, which is believed when the file is opened again."""

    stack = contextlib.ExitStack()
    stack.enter_context(instead(SqliteFile, "_reload", of_file))
    stack.enter_context(instead(Memory, "reload", of_queue))
    stack.enter_context(instead(SqliteQueue, "close", close))
    return stack


@bug
def _what_lay_beyond_the_end_of_a_stream_that_went_back_is_waited_for() -> Bug:
    return instead(Inherited, "ends_at", lambda self, ends: None)


@bug
def _a_claim_that_is_nearly_over_stays_with_its_tailer() -> Bug:
    def renewal(self: QueuePump) -> Renewal:
        now = self.clock.monotonic()
        least = now + self.sizes.heartbeat
        held = {number: out.place.until for number, out in self.flights.items() if out.place.until > least}
        return Renewal(min(held.values(), default=now) - now, list(held))

    return instead(QueuePump, "renewal", renewal)
