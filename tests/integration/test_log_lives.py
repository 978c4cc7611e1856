"""A log that is another one than the one that was read, as its source finds it; and where its first start begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.embedded import STAMPED, EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.foundation.clock import SYSTEM_CLOCK, Clock
from tailrace.model.errors import PositionsGone
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.log import Record
from tailrace.stores.log.readers import LogReaders
from tailrace.stores.restored import Stamp
from tailrace.tailers.sources import log
from tailrace.testing.clock import ManualClock


def source_of(
    stores: EmbeddedStores, choice: str = "stop", start: str = "earliest", clock: Clock = SYSTEM_CLOCK
) -> Any:
    options = log.KIND.options.model_validate({"stream": "s", "on_recreated": choice, "start": start})
    return log.KIND.build(options, replace(tailers_environment(stores), tailer="t", clock=clock))


def numbered(first: int, count: int) -> list[Record]:
    return [Record(b"%d" % number) for number in range(first, first + count)]


async def read(source: Any) -> list[bytes]:
    found: list[bytes] = []
    while batches := await source.read(1000, 1 << 20, 0):
        found += [payload for batch in batches for payload in batch.payloads]
    return found


async def test_a_log_that_was_begun_anew_is_read_whole_once_somebody_says_so(tmp_path: Path) -> None:
    # Given a stream that was read, and whose file then began anew and grew beyond that
    async with EmbeddedStores(tmp_path) as stores:
        source = source_of(stores)
        await stores.log.append("s", 0, numbered(0, 20))
        await source.open({})
        assert len(await read(source)) == 20
        await source.close()
        await stores.checkpoints.open("t", 1)
        await stores.checkpoints.commit("t", 1, {"0": Mark(20)})
    (tmp_path / "log.db").unlink()
    Stamp(tmp_path, STAMPED).begin_anew("log.db")
    async with EmbeddedStores(tmp_path) as stores:
        await stores.log.append("s", 0, numbered(100, 30))
        readers = LogReaders(stores.checkpoints)
        # When it is read on, then it stops, and the retention waits for all of it
        with pytest.raises(PositionsGone, match=r"begun anew.*on_recreated: from_start"):
            await source_of(stores).open({"0": 20})
        (known,) = await readers.readers(await stores.log.life("s"))
        assert known.settled == {}
        # And once somebody says so all of it is read, as another partition
        source = source_of(stores, "from_start")
        await source.open({"0": 20})
        assert await read(source) == [b"%d" % number for number in range(100, 130)]
        assert await source.ends() == {"0@2": 30}
        await source.close()
        await stores.checkpoints.commit("t", 1, {"0@2": Mark(30)})
        (known,) = await readers.readers(await stores.log.life("s"))
        assert known.settled == {0: 30}
        # And it goes on there, whatever the choice is then; of the former one nothing is there
        source = source_of(stores)
        await source.open({"0": 20, "0@2": 30})
        await stores.log.append("s", 0, numbered(130, 1))
        assert await read(source) == [b"130"]
        assert (await source.reread("0", [3])).lost == [(3, 3)]
        assert (await source.reread("0@2", [3])).payloads == [b"103"]
        await source.close()


async def test_a_log_that_lost_its_end_goes_on_where_that_is_once_somebody_says_so(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        # Given a stream of two partitions, one of which ends before what was read of it
        await stores.log.create("s", 2)
        await stores.log.append("s", 0, numbered(0, 15))
        await stores.log.append("s", 1, numbered(50, 9))
        positions = {"0": 20, "1": 7}
        # When it is read on, then it stops
        with pytest.raises(
            PositionsGone, match=r"ends at position 15, and was read up to 20.*on_recreated: from_start"
        ):
            await source_of(stores).open(positions)
        # And once somebody says so, what comes then is read, and what was read is not
        source = source_of(stores, "from_start")
        await source.open(positions)
        await stores.log.append("s", 0, numbered(15, 3))
        assert sorted(await read(source)) == [b"15", b"16", b"17", b"57", b"58"]
        assert await source.ends() == {"0@2": 18, "1@2": 9}
        await source.close()


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("2h", 10), ("latest", 20)])
async def test_a_first_start_begins_where_the_file_says_and_later_ones_where_that_was(
    tmp_path: Path, start: str, first: int
) -> None:
    clock = ManualClock()
    async with EmbeddedStores(tmp_path, clock=clock) as stores:
        # Given a stream with records of three hours and of one hour ago
        await stores.log.append("s", 0, numbered(0, 10))
        clock.advance(2 * 3600)
        await stores.log.append("s", 0, numbered(10, 10))
        clock.advance(3600)
        # When it is read first, and again much later, without a checkpoint, when a record and a partition have come
        source = source_of(stores, start=start, clock=clock)
        await source.open({})
        assert await read(source) == [b"%d" % number for number in range(first, 20)]
        await source.close()
        await stores.log.append("s", 0, numbered(20, 1))
        await stores.log.append("s", 1, numbered(21, 1))
        clock.advance(9 * 3600)
        source = source_of(stores, start=start, clock=clock)
        await source.open({})
        # Then it begins where the first one did, and reads what came since whole
        assert sorted(map(int, await read(source))) == [*range(first, 22)]
        await source.close()
