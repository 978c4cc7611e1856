"""The objects source behind a tailer: what cannot be handed out is a dead letter, what is gone is noted, and the audit
knows every position."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore
from servers.moto_s3 import Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.sdk.config import loads
from tailrace.sdk.model.dead_letter import LetterFilter
from tailrace.sdk.model.drop import Cause
from tailrace.sdk.model.errors import ConfigError, NotConnected
from tailrace.sdk.model.outcome import Outcome
from tailrace.sdk.model.workload import Ended
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.sources import objects_listing
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource

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
    assert ["bomb.gz" in reasons[0], "none.gz" in reasons[1], "truncated.gz" in reasons[2]] == [True] * 3
    assert "the line at 0 of long has 5000 bytes" in reasons[3]
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
    assert found == [[b"line"], [b"line"]] and len(failed) == 1 and "somebody else" in failed[0]
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
