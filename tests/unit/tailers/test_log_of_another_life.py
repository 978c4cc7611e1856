"""A log source whose log ends before its checkpoint: another log, which is not read from the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.model.errors import ConfigError
from tailrace.stores.log.log import Record
from tailrace.stores.log.sqlite import SCHEMA, SqliteLog
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.tailers.sources.due import DueStream
from tailrace.tailers.sources.log import LogSource


@pytest.mark.parametrize(("position", "stream", "end"), [(4, "orders", 3), (4, "not there yet", 0)])
async def test_a_log_that_ends_before_what_was_read_of_it_is_refused_with_what_to_do(
    tmp_path: Path, position: int, stream: str, end: int
) -> None:
    # Given a log with three records
    file = SqliteFile(tmp_path / "log.db", SCHEMA, name="log")
    await file.open()
    log = SqliteLog(file)
    await log.open()
    try:
        await log.append("orders", 0, [Record(b"")] * 3)
        # When it is opened where another one was left, Then that is said, as often as it is tried
        source = LogSource(log, stream)
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"partition 0, ends at position {end}, .* read up to {position}"):
                await source.open({"0": position})
        # And at its end, or in the delay service's log, it is read as ever
        await source.open({"0": end})
        assert await source.read(9, 1 << 20, 0) == []
        await source.close()
        await DueStream(log, stream).open({"0": position})
    finally:
        await file.close()
