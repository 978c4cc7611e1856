"""Gzip piece by piece, within its bound."""

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.foundation import gunzip
from tailrace.foundation.gunzip import FIRST, MOST_EMPTY, SLACK, Gunzip, Undecodable


def content_of(data, feed=7, most=5, ratio=200):
    """Content that comes out when the stream is fed and asked in small pieces."""
    stream, pieces = Gunzip(ratio), []
    for start in range(0, len(data), feed):
        stream.feed(data[start : start + feed])
        while not stream.wants:
            pieces.append(stream.pull(most))
            assert len(pieces[-1]) <= most
    stream.finish()
    return b"".join(pieces)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.integers(1, 50), st.integers(1, 400))
def test_members_one_after_the_other_come_out_whole(members, feed, most):
    data = b"".join(map(gzip.compress, members))
    assert content_of(data, feed, most) == b"".join(members)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_what_ends_early_is_told_and_what_came_before_is_right(content, data):
    packed = gzip.compress(content)
    cut = data.draw(st.integers(0, len(packed) - 1))
    gunzip = Gunzip(200)
    gunzip.feed(packed[:cut])
    found = gunzip.pull(1000)
    assert content.startswith(found)
    with pytest.raises(Undecodable, match="ends early"):
        gunzip.finish()


def test_padding_with_zeros_means_nothing():
    assert content_of(gzip.compress(b"one") + bytes(10) + gzip.compress(b"two") + bytes(3)) == b"onetwo"


def test_what_is_no_gzip_is_told():
    with pytest.raises(Undecodable, match="not valid gzip after 0 bytes"):
        content_of(b"plain text")
    with pytest.raises(Undecodable, match="not valid gzip after 5 bytes"):
        content_of(gzip.compress(b"hello") + b"garbage")


def test_a_damaged_one_is_told():
    packed = bytearray(gzip.compress(random.Random(1).randbytes(1000)))
    packed[500] ^= 255
    with pytest.raises(Undecodable):
        content_of(bytes(packed), 100, 1000)


def test_a_bomb_is_stopped_at_its_bound():
    bomb = gzip.compress(bytes(64 << 20))
    gunzip, given_ = Gunzip(200), 0
    gunzip.feed(bomb)
    with pytest.raises(Undecodable, match="more than 200 times"):
        while True:
            given_ += len(gunzip.pull(1 << 16))
    assert given_ <= SLACK + 200 * len(bomb) < 16 << 20


def test_what_is_small_may_be_packed_as_tightly_as_it_likes():
    assert content_of(gzip.compress(bytes(SLACK)), 1 << 16, 1 << 16, ratio=1) == bytes(SLACK)


class Counting:
    """A stand-in for zlib that counts the members it was given, and their bytes."""

    def __init__(self, real):
        self._real, self.members, self.given = real, 0, 0

    def __getattr__(self, name):
        return getattr(self._real, name)

    def decompressobj(self, *arguments):
        self.members += 1
        counting, stream = self, self._real.decompressobj(*arguments)

        class Stream:
            def __getattr__(self, name):
                return getattr(stream, name)

            def decompress(self, data, most):
                counting.given += len(data)
                return stream.decompress(data, most)

        return Stream()


@pytest.fixture
def counting(monkeypatch):
    counting = Counting(gunzip.zlib)
    monkeypatch.setattr(gunzip, "zlib", counting)
    return counting


def test_members_without_content_end_it_soon_whatever_their_number(counting):
    # Given a megabyte of members without content
    data = gzip.compress(b"") * 50_000
    stream = Gunzip(200)
    stream.feed(data)
    # Then it is refused after the first thousand, and next to nothing of it was looked at
    with pytest.raises(Undecodable, match="more than 1000 gzip members without any content"):
        stream.pull(1 << 20)
    assert counting.members == MOST_EMPTY + 1 and counting.given < 2 << 20


def test_many_small_members_are_each_given_what_they_need(counting):
    # Given as many small members as a megabyte has room for
    data = gzip.compress(b"x", 1) * 40_000
    stream = Gunzip(200)
    stream.feed(data)
    # Then all come out, and what lies behind each was not given to it again and again
    assert stream.pull(1 << 20) == b"x" * 40_000
    stream.finish()
    assert counting.given <= 40_000 * FIRST


def test_some_members_without_content_mean_nothing():
    assert content_of((gzip.compress(b"one") + gzip.compress(b"")) * 500) == b"one" * 500
