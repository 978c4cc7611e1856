"""The fleet of a log: the first record of a stream of its own, which nobody trims."""

from __future__ import annotations

from ..fleets import refuse_another
from .log import Log, Record

STREAM = "fleet"
#: Bytes of the record that are read.
_MOST = 1 << 16


async def refuse_another_fleet(log: Log, store: str, fleet: str) -> None:
    """Notes in the log that it belongs to this fleet. Raises ConfigError where it belongs to another one: of two that
    note themselves at once the first record counts. `store`: the log's name in messages."""
    found = await log.read(STREAM, 0, 0, 1, _MOST)
    if not found.payloads:
        await log.append(STREAM, 0, [Record(fleet.encode())])
        found = await log.read(STREAM, 0, 0, 1, _MOST)
    owner = found.payloads[0].decode() if found.payloads else fleet
    refuse_another(store, owner, fleet, "another `prefix` for `delay_log` in stores.yaml")
