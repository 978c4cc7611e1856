"""`Context.open()`: the content, whether it travelled or only where it lies."""

import gzip

import obstore
import pytest
from obstore.store import LocalStore

from tailrace import Call, Context, Fatal
from tailrace.foundation.object_places import Place
from tailrace.model.errors import ConfigError, InvalidPayload, InvalidRequest
from tailrace.model.reference import REFERENCE, Reference
from tailrace.sdk.opened_content import Places


class Folder:
    def __init__(self, path):
        self.url = f"file://{path}"
        self.store = LocalStore(path)

    def put(self, key, content):
        obstore.put(self.store, key, content)

    def version(self, key):
        return f"e:{obstore.head(self.store, key)['e_tag']}"

    def context(self, key, **where):
        payload = Reference(self.url, key, **where).encode()
        return Context(payload=payload, headers=(REFERENCE,), places=Places([Place(url=self.url)]))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


async def content(context):
    return b"".join([piece async for piece in context.open()])


async def test_what_travelled_is_the_payload():
    assert await content(Context(payload=b"x" * 3_000_000)) == b"x" * 3_000_000
    assert await content(Context()) == b""


async def test_an_object_is_streamed_in_bounded_pieces(folder):
    folder.put("a", b"0123456789" * 300_000)
    pieces = [piece async for piece in folder.context("a").open()]
    assert b"".join(pieces) == b"0123456789" * 300_000 and max(map(len, pieces)) <= 1 << 20
    assert await content(folder.context("a", offset=5, length=10)) == b"5678901234"


async def test_what_was_submitted_by_reference_is_read_where_it_lies(folder):
    folder.put("report.csv", b"much")
    call = Call("read_upload", content=Reference(folder.url, "report.csv"))
    ran = Context(payload=call.payload, headers=call.headers, places=Places([Place(url=folder.url)]))
    assert await content(ran) == b"much"


async def test_the_wrong_kind_of_loop_is_told():
    with pytest.raises(InvalidRequest, match="async for"):
        list(Context(payload=b"hello").open())


def test_a_plain_function_iterates_as_well(folder):
    assert b"".join(Context(payload=b"hello").open()) == b"hello"
    folder.put("a.gz", gzip.compress(b"hello"))
    assert b"".join(folder.context("a.gz", gzip=True).open()) == b"hello"
    assert b"".join(folder.context("a.gz", gzip=True, offset=1, length=3).open()) == b"ell"


async def test_what_is_gone_replaced_damaged_or_explosive_is_never_tried_again(folder):
    folder.put("a", b"old")
    old = folder.version("a")
    folder.put("a", b"newer")
    folder.put("none.gz", b"this is no gzip")
    folder.put("bomb.gz", gzip.compress(bytes(64 << 20)))
    for key, where, why in (
        ("a", {"version": old}, "replaced"),
        ("b", {}, "gone"),
        ("none.gz", {"gzip": True}, "not valid gzip"),
        ("bomb.gz", {"gzip": True}, "max_ratio"),
    ):
        with pytest.raises(Fatal, match=why):
            await content(folder.context(key, **where))


async def test_a_place_that_the_worker_does_not_know_is_told_with_what_to_add(folder):
    context = Context(payload=Reference("s3://other/x", "k").encode(), headers=(REFERENCE,))
    with pytest.raises(ConfigError, match=r"worker.yaml, as \"objects: \[\{url: 's3://other/x'\}\]"):
        await content(context)


async def test_a_payload_that_is_no_reference_is_told():
    with pytest.raises(InvalidPayload, match="no reference"):
        await content(Context(payload=b"x", headers=(REFERENCE,)))
