"""Gzip, piece by piece, with a bound on what may come out of it.

A few kilobytes can say terabytes, so what has come out is compared with what went in after every piece.
"""

from __future__ import annotations

import zlib

from .model.errors import TailraceError

#: What may come out before the ratio is looked at: small files may well compress a thousand times.
SLACK = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class Undecodable(TailraceError):
    """What was to be gzip is none, ends early, is damaged, or expands beyond its bound."""


class Gunzip:
    """Takes compressed bytes and gives their content, any number of gzip members one after the other.

    most_ratio  content may be so many times as long as what was fed, beyond SLACK; more raises Undecodable
    wants       it can give nothing more before it is fed
    """

    def __init__(self, most_ratio: int) -> None:
        self._most_ratio = most_ratio
        self._stream = zlib.decompressobj(_GZIP)
        self._input = b""
        self._fed = 0
        self._given = 0
        self._begun = False  # whether the current member has had any byte

    @property
    def wants(self) -> bool:
        """Whether it can give nothing more before it is fed."""
        return not self._input

    def feed(self, data: bytes) -> None:
        """More of the compressed bytes."""
        self._input += data
        self._fed += len(data)

    def pull(self, most: int) -> bytes:
        """At most `most` bytes of content; none: it wants more. Raises Undecodable."""
        pieces: list[bytes] = []
        left = most
        while left > 0 and self._input:
            if self._stream.eof:
                self._input = self._input.lstrip(b"\x00")  # padding between and after members means nothing
                if not self._input:
                    break
                self._stream = zlib.decompressobj(_GZIP)
            self._begun = True
            try:
                piece = self._stream.decompress(self._input, left)
            except zlib.error as error:
                raise Undecodable(f"it is not valid gzip after {self._given} bytes of content: {error}") from None
            self._input = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            pieces.append(piece)
            left -= len(piece)
            self._given += len(piece)
            if self._given > SLACK + self._most_ratio * self._fed:
                raise Undecodable(
                    f"its content is more than {self._most_ratio} times as long as its {self._fed} compressed bytes "
                    "so far, the bound of max_ratio"
                )
        return b"".join(pieces)

    def finish(self) -> None:
        """Nothing more is fed. Raises Undecodable when a member is not whole."""
        if not self._begun or not self._stream.eof:
            raise Undecodable(f"the gzip stream ends early, after {self._given} bytes of content")
