"""The objects source behind a tailer: an item that cannot be handed out is a dead letter, an object that is gone is
noted, and the audit knows every position."""

from __future__ import annotations

import asyncio
import gzip
import sys
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore
from servers.moto_s3 import Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.config import loads
from tailrace.model.dead_letter import LetterFilter
from tailrace.model.drop import Cause
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.sources import objects_listing
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource
from tailrace.tailers.tailer import Tailer

sys.path.insert(0, str(Path(__file__).parent))
from held_worker import LONG, SHORT, Begin, Place

BLOCK = "1KiB"


def write(folder: Path, **files: bytes) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)


async def test_bad_objects_are_a_dead_letter_each_and_all_others_are_done(
    start: Any, scheduler: Any, stores: EmbeddedStores, tmp_path: Path, eventually: Any
) -> None:
    # Given good objects among a truncated one, a bomb, one that is no gzip, one with a line too long, and an empty one
    lines = [b"%d" % number for number in range(3000)]
    write(
        tmp_path / "in",
        good=b"\n".join(lines),
        good_gz=gzip.compress(b"\n".join(lines)),
        truncated_gz=gzip.compress(b"\n".join(lines), 1)[:-20],
        bomb_gz=gzip.compress(bytes(64 << 20)),
        none_gz=b"this is no gzip",
        long=b"x" * 5000,
        empty=b"",
    )
    scheduler.allow("f")
    source = {"kind": "objects", "url": f"file://{tmp_path / 'in'}", "format": "jsonl", "block": BLOCK, "poll": 0.05}
    tailer = await start(source={**source, "max_line": "1KiB"}, function="f")
    # When they are read
    await eventually(lambda: tailer.overview().dead == 4 and tailer.overview().lag == 0)
    await eventually(lambda: tailer.overview().in_flight == 0)
    # Then the good lines ran, and four dead letters say why and where
    ran = [payload for flight in scheduler.flights for payload in flight.payloads]
    assert len(ran) > 6000 and sorted(set(ran)) == sorted(set(lines))
    letters = await stores.dead_letters.list(LetterFilter(tailer="t"), 10)
    reasons = sorted(letter.reason for letter in letters)
    named = [reason.partition(", version ")[0] for reason in reasons]
    assert named == ["bomb.gz", "long", "none.gz", "truncated.gz"]
    assert "line 1, byte 0: the line has 5000 bytes" in reasons[1]
    # And the empty one is noted
    [row] = await stores.drops.list("t", 10)
    assert (row.drop.cause, row.drop.items) == (Cause.ABSENT, 1)


async def test_a_held_line_is_read_again_by_its_position(
    start: Any, scheduler: Any, tmp_path: Path, eventually: Any
) -> None:
    # Given a function that is throttled once for each line
    lines = [b"line %d" % number for number in range(200)]
    write(tmp_path / "in", plain=b"\n".join(lines), packed_gz=gzip.compress(b"\n".join(lines)))
    seen: set[str] = set()

    def once(flight: Any, index: int) -> Ended:
        again = flight.ids[index] in seen
        seen.add(flight.ids[index])
        return Ended(Outcome.SUCCESS) if again else Ended(Outcome.THROTTLED, "later", after=0.2)

    scheduler.decide = once
    scheduler.allow("f")
    source = {"kind": "objects", "url": f"file://{tmp_path / 'in'}", "format": "jsonl", "block": BLOCK, "poll": 0.05}
    tailer = await start(source=source, function="f")
    await eventually(lambda: tailer.overview().settled == 400)
    runs: dict[str, set[bytes]] = {}
    for flight in scheduler.flights:
        for id_, payload in zip(flight.ids, flight.payloads, strict=True):
            runs.setdefault(id_, set()).add(payload)
    assert all(len(payloads) == 1 for payloads in runs.values()), "an id is one line for ever"
    assert sorted(payload for payloads in runs.values() for payload in payloads) == sorted(lines * 2)


async def test_a_store_that_is_away_is_a_state_of_the_tailer(
    start: Any, scheduler: Any, moto: Moto, eventually: Any
) -> None:
    scheduler.allow("f")
    keys = {**moto.keys, "url": "s3://no-such-bucket/x"}
    tailer = await start(source={"kind": "objects", **keys}, function="f")
    await eventually(lambda: "NoSuchBucket" in tailer.overview().detail or "404" in tailer.overview().detail)
    assert "test-secret" not in tailer.overview().detail
    assert tailer.overview().state != "failed"


class LongLine:
    """A tailer over objects of which the first line does not end: the checkpoint has passed it and all others."""

    def __init__(self, place: Place, stores: EmbeddedStores, folder: Path, mode: str) -> None:
        source = {"kind": "objects", "url": f"file://{folder}", "format": "jsonl", "mode": mode, "poll": 0.05}
        self.keys = {"source": source, "window": {"detach_after": "0.3s"}}
        self.partition = ObjectsOptions.model_validate({key: source[key] for key in ("url", "format")}).fingerprint()
        self.place = place
        self._stores = stores
        self._folder = folder

    def id(self, position: int) -> str:
        return f"t/{self.partition}/{position}"

    async def passed(self, eventually: Any) -> Tailer:
        place, position = self.place, 0
        tailer = await place.tailer(**self.keys)
        # The rest of its object ends, and a whole one after it.
        for name, lines in (("a", b"long\n1\n2\n"), ("b", b"3\n4\n")):
            write(self._folder, **{name: lines})
            end = position + lines.count(b"\n")
            for each in range(max(1, position), end):
                await eventually(lambda each=each: self.id(each) in place.worker.open)
                place.worker.end(self.id(each))
            position = end
            async with asyncio.timeout(20):
                while await self.checkpoint() != position:
                    await asyncio.sleep(0.01)
        assert list(place.worker.open) == [self.id(0)]
        return tailer

    async def checkpoint(self) -> int:
        mark = (await self._stores.checkpoints.load("t")).get(self.partition)
        return 0 if mark is None else mark.position

    async def rows(self) -> list[tuple[int, bool]]:
        return [(row.entry.position, row.entry.is_detached) for row in await self._stores.ledger.list("t", 10)]

    async def until_rows(self, wanted: list[tuple[int, bool]]) -> None:
        async with asyncio.timeout(20):
            while await self.rows() != wanted:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("mode", ["inventory", "lexicographic"])
async def test_a_line_that_runs_long_is_passed_and_ends_under_the_next_owner(
    begin: Begin, stores: EmbeddedStores, parking: Any, tmp_path: Path, eventually: Any, mode: str
) -> None:
    # Given a line that runs long, which the checkpoint has passed, and leases much longer than this test
    here = LongLine(await begin(LONG), stores, tmp_path / "in", mode)
    first = await here.passed(eventually)
    assert await here.rows() == [(0, True)] and [item.payload for item in parking.items] == [b"long"]
    # When its tailer dies and another one comes, which in the order of keys cannot read it again
    await here.place.die(first)
    second = await here.place.tailer(**here.keys)
    await eventually(lambda: second.overview().in_flight == 1)
    write(tmp_path / "in", c=b"5\n")
    await eventually(lambda: here.id(5) in here.place.worker.open)
    here.place.worker.end(here.id(5))
    # Then it goes on, and when it ends nothing is left of it
    here.place.worker.end(here.id(0))
    await here.until_rows([])
    await eventually(lambda: second.overview().in_flight == 0 and second.overview().lag == 0)
    assert [audit.verdict() for audit in second.audits() if not audit.good] == []
    assert sorted(here.place.worker.started) == [here.id(position) for position in range(6)]
    await second.stop()
    assert await here.checkpoint() == 6


@pytest.mark.parametrize("mode", ["inventory", pytest.param("lexicographic", marks=pytest.mark.long(minutes=0.2))])
async def test_a_line_that_runs_long_runs_again_when_nothing_of_it_can_run_any_more(
    begin: Begin, stores: EmbeddedStores, parking: Any, tmp_path: Path, eventually: Any, mode: str
) -> None:
    # Given a line that runs long, which the checkpoint has passed
    here = LongLine(await begin(SHORT), stores, tmp_path / "in", mode)
    first = await here.passed(eventually)
    # When tailer, scheduler and worker die together, and others come
    loop = asyncio.get_running_loop()
    died = loop.time()
    await here.place.end_scheduler()
    await first.stop()
    await here.place.start()
    second = await here.place.tailer(**here.keys)
    # Then its copy may start when its lease is over, and not before
    await here.until_rows([(0, False)])
    assert loop.time() - died >= SHORT.scheduler
    # And where its record is known it comes at once; else its guard is what runs again
    again = 2 if mode == "inventory" else 1
    await eventually(lambda: len(parking.items) == again)
    assert {(item.id, item.payload, item.n) for item in parking.items} == {(here.id(0), b"long", 1)}
    assert second.overview().in_flight == 0 and not here.place.worker.started


async def test_of_two_that_read_the_same_one_learns_that_it_is_not_alone(stores: EmbeddedStores) -> None:
    client = MemoryStore()
    options = ObjectsOptions(url="memory:///", format="jsonl", poll=0.02)
    one, two = (ObjectsSource(options, stores.inventory, stores.segments, "o", client) for _ in range(2))
    for source in (one, two):
        await source.open({})
    obstore.put(client, "a", b"line\n")
    failed, found = [], []
    for source in (one, two):
        try:
            async with asyncio.timeout(10):
                while not (batches := await source.read(10, 1 << 20, 0.1)):
                    pass
            found.append(batches[0].payloads)
        except NotConnected as error:
            failed.append(str(error))
            await source.close()
            await source.open({})
            found.append((await source.read(10, 1 << 20, 5))[0].payloads)
    assert found == [[b"line"], [b"line"]] and len(failed) == 1 and "another process" in failed[0]
    assert len(await stores.segments.read(one._name, 0, 10)) == 1
    for source in (one, two):
        await source.close()


async def test_a_listing_in_the_order_of_keys_waits_for_the_reading(
    stores: EmbeddedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects_listing, "AHEAD", 100)
    monkeypatch.setattr(objects_listing, "PAGE", 50)
    client = MemoryStore()
    for number in range(1000):
        obstore.put(client, f"{number:04}", b"%d" % number)
    options = ObjectsOptions(url="memory:///", mode="lexicographic", poll=0.02, block=1024)
    source = ObjectsSource(options, stores.inventory, stores.segments, "o", client)
    await source.open({})
    await asyncio.sleep(0.2)
    assert await stores.inventory.end(source._name) < 400, "listed far ahead of what was read"
    found: list[bytes] = []
    async with asyncio.timeout(20):
        while len(found) < 1000:
            found += [payload for batch in await source.read(50, 1 << 20, 1) for payload in batch.payloads]
    assert found == [b"%d" % number for number in range(1000)]
    await source.close()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["  url: ftp://x"], "t.yaml:4: source.url: expected s3://, gs://, az://, file:// or memory://"),
        (["  url: s3://b", "  mode: inventory", "  overlap: 5"], 't.yaml:6: source.overlap: "mode: inventory"'),
        (["  url: s3://b", "  mode: lexicographic", "  versions: true"], "t.yaml:6: source.versions: with"),
        (["  url: s3://b", "  format: jsonl", "  max_value: 5"], "t.yaml:6: source.max_value: lines are never"),
        (["  url: s3://b", "  max_line: 5"], 't.yaml:5: source.max_line: "format: whole" has no lines'),
        (["  url: file:///a", "  region: x"], "t.yaml:5: source.region: only an s3:// place has one"),
        (["  url: s3://b", "  credentials: {secret: hush}"], "t.yaml:5: source.credentials: unknown secret;"),
        (["  url: s3://b", "  formt: jsonl"], "did you mean 'format'"),
        (["  url: s3://b", "  max_ratio: 0"], "t.yaml:5: source.max_ratio: expected greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_line_and_key(lines: list[str], said: str) -> None:
    text = "\n".join(["name: t", "function: f", "source:", *lines, "  kind: objects"])
    with pytest.raises(ConfigError) as caught:
        loads(text, "t.yaml", TailerConfig, environment={})
    assert said in str(caught.value) and "hush" not in str(caught.value)
