"""Listings of objects leave nothing out without a word: whatever order a store lists in, and whatever name an object
bears, it is read, or is a dead letter that names it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from scenes import live_platform

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import NotConnected
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource

PAGE = 250
Order = Callable[[list[str]], list[str]]


def by_bytes(keys: list[str]) -> list[str]:
    return sorted(keys, key=str.encode)


def by_utf_16(keys: list[str]) -> list[str]:
    """Azure's emulator, and whatever compares text as Java and JavaScript do."""
    return sorted(keys, key=lambda key: key.encode("utf-16-be"))


def by_folders(keys: list[str]) -> list[str]:
    """A store that keeps its objects in folders."""
    return sorted(keys, key=lambda key: key.split("/"))


def by_chance(keys: list[str]) -> list[str]:
    """A directory bucket."""
    return sorted(keys, key=lambda key: md5(key.encode()).digest())


class OrderedS3:
    """A small server of one bucket that speaks ListObjectsV2, and lists in an order of its own."""

    def __init__(self, order: Order, objects: dict[str, bytes]) -> None:
        self.order, self.objects = order, objects
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer.answer(self, body=True)

            def do_HEAD(self) -> None:
                outer.answer(self, body=False)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, body: bool) -> None:
        parts = urlsplit(request.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        key = unquote(parts.path).removeprefix("/bucket").removeprefix("/")
        headers, status = {"Content-Type": "application/xml"}, 200
        if "list-type" in asked:
            content = self._page(asked).encode()
        elif (found := self.objects.get(key)) is not None:
            content, etag = found, f'"{md5(found).hexdigest()}"'
            headers |= {"ETag": etag, "Last-Modified": "Sun, 29 Nov 2026 10:00:00 GMT"}
            if request.headers.get("If-Match") not in (None, etag):
                status, content = 412, b""
            elif span := request.headers.get("Range"):
                first, _, last = span.removeprefix("bytes=").partition("-")
                stop = min(int(last) + 1 if last else len(found), len(found))
                status, content = 206, found[int(first) : stop]
                headers["Content-Range"] = f"bytes {first}-{stop - 1}/{len(found)}"
        else:
            status, content = 404, b"<Error><Code>NoSuchKey</Code></Error>"
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if body:
            request.wfile.write(content)

    def _page(self, asked: dict[str, str]) -> str:
        keys = self.order([key for key in self.objects if key.startswith(asked.get("prefix", ""))])
        if after := asked.get("continuation-token"):
            keys = keys[keys.index(after) + 1 :]
        elif after := asked.get("start-after"):
            there = self.order([*{*keys, after}])
            keys = there[there.index(after) + 1 :]
        page, encoded = keys[:PAGE], asked.get("encoding-type") == "url"
        rows = "".join(
            f"<Contents><Key>{quote(key) if encoded else escaped(key)}</Key>"
            "<LastModified>2026-11-29T10:00:00.000Z</LastModified>"
            f"<ETag>&quot;{md5(self.objects[key]).hexdigest()}&quot;</ETag><Size>{len(self.objects[key])}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in page
        )
        more = len(keys) > PAGE
        token = f"<NextContinuationToken>{escaped(page[-1])}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bucket</Name>'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}<KeyCount>{len(page)}</KeyCount>{rows}"
            "</ListBucketResult>"
        )


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[EmbeddedStores]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        yield stores


@pytest.fixture
def serve() -> Iterator[Callable[[Order, dict[str, bytes]], OrderedS3]]:
    servers: list[OrderedS3] = []

    def one(order: Order, objects: dict[str, bytes]) -> OrderedS3:
        servers.append(OrderedS3(order, objects))
        return servers[-1]

    yield one
    for server in servers:
        server.close()


def on_server(server: OrderedS3, **more: Any) -> dict[str, Any]:
    return {
        "url": "s3://bucket/in",
        "endpoint": server.endpoint,
        "region": "us-east-1",
        "credentials": {"access_key_id": "test", "secret_access_key": "test-secret"},
        **more,
    }


def source_over(stores: EmbeddedStores, keys: dict[str, Any]) -> ObjectsSource:
    options = ObjectsOptions.model_validate({"poll": 0.05, **keys})
    return ObjectsSource(options, stores.inventory, stores.segments, "o")


class Read:
    """The items that a source gave."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.letters: list[str] = []
        self.absent = 0


async def read_all(source: ObjectsSource, position: int = 0) -> Read:
    read = Read()
    await source.open({source.partition: position})
    async with asyncio.timeout(30):
        while True:
            batches = await source.read(1000, 1 << 20, 0.3)
            for batch in batches:
                read.absent += len(batch.absent)
                read.letters += [batch.refused[index] for index in sorted(batch.refused)]
                read.payloads += [each for at, each in enumerate(batch.payloads) if at not in batch.refused]
            if not batches and source.idle:
                break
    await source.close()
    return read


def many() -> list[str]:
    """Keys of which every order above has other ones at the end of the first thousand."""
    letters = ["a", "a-", "b", "b-", "c", "c-", "é", "\uf900", "\uf900-", "\U0001f600"]
    return [f"in/{letter}{folder}{number:02}" for letter in letters for folder in ("", "/") for number in range(70)]


@pytest.mark.trust(point=6)
@pytest.mark.parametrize("order", [by_utf_16, by_folders, by_chance])
async def test_every_object_is_read_whatever_order_the_store_lists_in(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3], order: Order
) -> None:
    # Given a bucket whose server lists page by page in an order of its own
    objects = {key: key.encode() for key in many()}
    server = serve(order, objects)
    # When it is read by default
    read = await read_all(source_over(stores, on_server(server)))
    # Then every object is there once
    assert sorted(read.payloads) == sorted(objects.values())
    assert (read.letters, read.absent) == ([], 0)


@pytest.mark.trust(point=6)
@pytest.mark.parametrize("order", [by_bytes, by_utf_16, by_folders])
async def test_every_object_is_counted_also_where_some_keys_cannot_be_named(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3], order: Order
) -> None:
    # Given such a bucket, with keys that the client library cannot name
    odd = ["in/a//1", "in/a//2", "in/\uf900/./1", "in/\U0001f600\t"]
    some = many()[::3]
    objects = {key: key.encode() for key in [*some, *odd]}
    server = serve(order, objects)
    # When it is read by default
    read = await read_all(source_over(stores, on_server(server)))
    # Then every object is there once, and each that cannot be named is a dead letter of its own
    assert sorted(read.payloads) == sorted(objects[key] for key in some)
    said = "\n".join(read.letters)
    assert [key for key in odd if repr(key.removeprefix("in/")) not in said] == []


@pytest.mark.trust(point=6)
@pytest.mark.parametrize("order", [by_utf_16, by_folders, by_chance])
async def test_listing_in_the_order_of_keys_stops_and_says_so_where_keys_do_not_rise(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3], order: Order
) -> None:
    # Given a bucket whose server lists in an order of its own, and a tailer that goes on behind the last key
    server = serve(order, {key: key.encode() for key in many()})
    source = source_over(stores, on_server(server, mode="lexicographic", overlap=0))
    # When it is read
    with pytest.raises(NotConnected) as caught:
        await read_all(source)
    await source.close()
    # Then it stops, and says where and what to do
    assert "mode: inventory" in str(caught.value) and "order" in str(caught.value)


@pytest.mark.trust(point=6)
@pytest.mark.parametrize("mode", ["inventory", "lexicographic"])
async def test_content_under_a_key_that_ends_in_a_slash_is_a_dead_letter(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3], mode: str
) -> None:
    # Given keys that end in a slash: with content, some beside an object that is called alike; and an empty one
    there = {f"in/{key}": key.encode() for key in ("a", "a.json", "a/", "b/", "c", "c/", "d/e", "z/z/")}
    server = serve(by_bytes, there | {"in/d/": b""})
    # When all is read
    read = await read_all(source_over(stores, on_server(server, mode=mode)))
    # Then all that have a name are there, each other one is a dead letter that names it, and the empty one is nothing
    assert sorted(read.payloads) == [b"a", b"a.json", b"c", b"d/e"]
    said = "\n".join(read.letters)
    assert [key for key in ("a/", "b/", "c/", "z/z/") if repr(key) not in said] == []
    assert len(read.letters) == 4


@pytest.mark.trust(point=6)
@pytest.mark.parametrize("mode", ["inventory", "lexicographic"])
async def test_every_file_of_a_folder_is_read_whatever_its_name(
    stores: EmbeddedStores, tmp_path: Path, mode: str
) -> None:
    # Given files whose names the client library hides or cannot name, among others
    folder = tmp_path / "in"
    names = ["a", "invoice#1", "invoice#20", "deep/b#7", "tab\tname", "c%20d", "#5", "ü", "deep/er/x"]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    with open(os.fsencode(folder) + b"/latin\xe9", "wb") as file:
        file.write(b"latin")
    # And things that are no files
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to(tmp_path / "nothing")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        # When all is read, and read again by another process
        read = await read_all(source_over(stores, {"url": f"file://{folder}", "mode": mode}))
        again = await read_all(source_over(stores, {"url": f"file://{folder}", "mode": mode}))
    # Then each is there once
    for each in (read, again):
        assert sorted(each.payloads) == sorted([*(name.encode() for name in names), b"latin"])
        assert (each.letters, each.absent) == ([], 0)


@pytest.mark.trust(point=6)
async def test_a_dead_letter_of_a_line_names_key_version_line_and_byte(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3]
) -> None:
    # Given an object whose third line is too long, and a damaged one
    content = b"one\n\ntwo\r\n" + b"x" * 5000 + b"\nfour\n"
    damaged = b"\x1f\x8b" + random.Random(5).randbytes(500)
    server = serve(by_bytes, {"in/a.jsonl": content, "in/b.gz": damaged})
    # When they are read
    read = await read_all(source_over(stores, on_server(server, format="jsonl", max_line="1KiB")))
    # Then the letters say all that is needed to find the place
    assert [payload.strip() for payload in read.payloads] == [b"one", b"two", b"four"]
    long, broken = sorted(read.letters, key=lambda letter: "b.gz" in letter)
    for word in ("a.jsonl", md5(content).hexdigest(), "line 4", "byte 10"):
        assert word in long, long
    for word in ("b.gz", md5(damaged).hexdigest(), "line 1", "byte 0"):
        assert word in broken, broken


@pytest.mark.trust(point=6)
async def test_a_dead_letter_of_a_line_names_its_place_also_after_a_restart(
    stores: EmbeddedStores, serve: Callable[..., OrderedS3]
) -> None:
    # Given a restart in the middle of an object, before a line that is too long
    content = b"".join(b"line %d\n" % number for number in range(1, 1001)) + b"x" * 5000 + b"\n"
    server = serve(by_bytes, {"in/a.jsonl": content})
    keys = on_server(server, format="jsonl", max_line="1KiB", block="1KiB")
    first = source_over(stores, keys)
    await first.open({})
    assert await first.read(5, 1 << 20, 5)
    await first.close()
    # When it is read on
    read = await read_all(source_over(stores, keys), position=5)
    # Then the letter counts from the beginning of the object
    assert len(read.payloads) == 995
    [letter] = read.letters
    assert f"line 1001, byte {content.index(b'x')}" in letter


@pytest.mark.trust(point=6)
def test_a_dead_letter_of_a_line_names_its_place_also_where_its_function_failed(tmp_path: Path) -> None:
    # Given an object with a line far behind that its function does not take, and one at which it fails twice
    lines = [b'{"name": "%d"}\r\n\n' % number for number in range(2000)]
    lines[1234], lines[1500] = b'{"nom": 1}\n', b'{"name": ""}\n'
    content = b"".join(lines)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(content)
    source = {"kind": "objects", "url": f"file://{tmp_path / 'in'}", "format": "jsonl", "block": "1KiB"}
    about = {"name": "lines", "source": source, "function": "greet", "retry": {"max_attempts": 2, "first": "1s"}}
    (tmp_path / "configs" / "tailers").mkdir(parents=True)
    (tmp_path / "configs" / "tailers" / "lines.yaml").write_text(json.dumps(about))
    up = live_platform.start(tmp_path)
    with up.process, contextlib.closing(up.process.stderr):
        # When all of it was run
        until = time.monotonic() + 60
        while len(letters := up.json("dead", "list")) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        up.process.terminate()
    # Then each letter says where its line is
    for wanted in (b'{"nom": 1}', b'{"name": ""}'):
        line, byte = content[: content.index(wanted)].count(b"\n") + 1, content.index(wanted)
        place = f", line {line}, byte {byte})"
        assert any(each["reason"].endswith(place) and "(a.jsonl, version " in each["reason"] for each in letters), (
            letters
        )
