"""The fleet that a log is of: the first record of a stream of its own, which nobody trims."""

from __future__ import annotations

from ..fleets import refuse_another
from .log import Log, Record

STREAM = "fleet"
#: Bytes of it that are read.
_MOST = 1 << 16


async def refuse_another_fleet(log: Log, store: str, fleet: str) -> None:
    """Says that the log is of this fleet. Raises ConfigError where it is another one's. Of two that say so at once the
    record that is first counts. `store`: what it is, for messages."""
    found = await log.read(STREAM, 0, 0, 1, _MOST)
    if not found.payloads:
        await log.append(STREAM, 0, [Record(fleet.encode())])
        found = await log.read(STREAM, 0, 0, 1, _MOST)
    owner = found.payloads[0].decode() if found.payloads else fleet
    refuse_another(store, owner, fleet, "another `prefix` for `delay_log` in stores.yaml")
