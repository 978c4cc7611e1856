"""Decompresses gzip, piece by piece, with a bound on the output.

A few kilobytes can expand to terabytes, so output and input are compared after every piece. A member costs the same
however little is in it, so empty members are counted, and the input behind one is not copied.
"""

from __future__ import annotations

import zlib

from ..model.errors import TailraceError

#: Bytes of output before the ratio counts: small files may well compress a thousand times.
SLACK = 1 << 20
#: Members without content in one stream: some writers end with one, none writes many.
MOST_EMPTY = 1000
#: Bytes that a new member is given first, and those that it is given then.
FIRST, THEN = 1 << 10, 64 << 10
_GZIP = 16 + zlib.MAX_WBITS


class Undecodable(TailraceError):
    """Content that was to be gzip is none, ends early, is damaged, or expands beyond its bound."""


class Gunzip:
    """Takes compressed bytes and gives their content, any number of gzip members one after the other.

    most_ratio  content may be so many times as long as the input, beyond SLACK; more raises Undecodable
    wants       it can give nothing more before it is fed
    """

    def __init__(self, most_ratio: int) -> None:
        self._most_ratio = most_ratio
        self._stream = zlib.decompressobj(_GZIP)
        self._input = b""
        self._at = 0  # the next place in the input
        self._fed = 0
        self._given = 0
        self._member = 0  # bytes that were given before the current member
        self._fresh = True  # the current one was given nothing yet
        self._empty = 0
        self._begun = False  # whether the current member has had any byte

    @property
    def wants(self) -> bool:
        """Whether it can give nothing more before it is fed."""
        return self._at >= len(self._input)

    def feed(self, data: bytes) -> None:
        """Adds more of the compressed bytes."""
        self._input, self._at = self._input[self._at :] + data, 0
        self._fed += len(data)

    def pull(self, most: int) -> bytes:
        """Returns at most `most` bytes of content; empty: it wants more input. Raises Undecodable."""
        pieces: list[bytes] = []
        left = most
        while left > 0 and not self.wants:
            if self._stream.eof:
                behind = self._input[self._at : self._at + FIRST]
                padding = len(behind) - len(behind.lstrip(b"\x00"))
                self._at += padding  # between and after members it means nothing
                if padding == len(behind):
                    continue
                self._stream, self._member, self._fresh = zlib.decompressobj(_GZIP), self._given, True
            self._begun = True
            some = self._input[self._at : self._at + (FIRST if self._fresh else THEN)]
            self._fresh = False
            try:
                piece = self._stream.decompress(some, left)
            except zlib.error as error:
                raise Undecodable(f"it is not valid gzip after {self._given} bytes of content: {error}") from None
            rest = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            self._at += len(some) - len(rest)
            pieces.append(piece)
            left -= len(piece)
            self._given += len(piece)
            if self._stream.eof and self._given == self._member:
                self._empty += 1
                if self._empty > MOST_EMPTY:
                    raise Undecodable(f"it has more than {MOST_EMPTY} gzip members without any content")
            if self._given > SLACK + self._most_ratio * self._fed:
                raise Undecodable(
                    f"its content is more than {self._most_ratio} times as long as its {self._fed} compressed bytes "
                    "so far, the bound of max_ratio"
                )
        return b"".join(pieces)

    def finish(self) -> None:
        """Checks the end, when nothing more is fed. Raises Undecodable when a member is not whole."""
        if not self._begun or not self._stream.eof:
            raise Undecodable(f"the gzip stream ends early, after {self._given} bytes of content")
