"""Content, piece by piece → its lines, the same wherever the pieces' borders are.

Lines are bytes between newlines, handed on as they are; one that is empty, or only a carriage return, is no item. Only
a part that may be a line is kept: a line longer than allowed is passed over, and reported by its place.
"""

from __future__ import annotations

from typing import NamedTuple


class LineSpan(NamedTuple):
    """Lines that follow each other in content: `length` bytes from `offset` on, newlines and empty lines included.

    too_long  the length of the one line in it that is longer than allowed; 0: `lines` are here
    number    of its first line, from 1 on, empty ones included
    """

    offset: int
    length: int
    lines: list[bytes]
    too_long: int = 0
    number: int = 1


class Lines:
    """A cutter of one content into lines. `longest` is in bytes. `number` is that of the line at `offset`, from 1 on;
    of those behind an `offset` to begin at only the difference is known.

    Invariant: everything before `offset` was returned in a span, or was an empty line.
    """

    def __init__(self, longest: int, offset: int = 0) -> None:
        self.offset = offset
        self.number = 1
        self._longest = longest
        self._rest: list[bytes] = []
        self._size = 0  # of the rest, or of the line that is passed
        self._passing = False

    def feed(self, piece: bytes) -> list[LineSpan]:
        """The lines that the next piece completes."""
        runs: list[LineSpan] = []
        if self._passing:
            end = piece.find(b"\n")
            if end < 0:
                self._size += len(piece)
                return runs
            runs.append(self._passed(end, 1))
            piece = piece[end + 1 :]
        end = piece.rfind(b"\n") + 1
        if end:
            runs.extend(self._cut(b"".join((*self._rest, piece[:end]))))
            self._rest, self._size = [], 0
        if end < len(piece):
            self._rest.append(piece[end:] if end else piece)
            self._size += len(piece) - end
            if self._size > self._longest + 1:  # a carriage return may be its last byte
                self._rest, self._passing = [], True
        return runs

    def finish(self) -> list[LineSpan]:
        """The lines left when nothing comes any more: a last one without a newline."""
        if self._passing:
            return [self._passed(0, 0)]
        rest, self._rest, self._size = b"".join(self._rest), [], 0
        return list(self._cut(rest)) if rest else []

    def _passed(self, more: int, newline: int) -> LineSpan:
        size = self._size + more
        run = LineSpan(self.offset, size + newline, [], size, self.number)
        self.offset += run.length
        self.number += newline
        self._rest, self._size, self._passing = [], 0, False
        return run

    def _cut(self, block: bytes) -> list[LineSpan]:
        lines = block.split(b"\n")
        whole = not lines[-1]
        if whole:
            lines.pop()
        if max(map(len, lines), default=0) <= self._longest:
            run = LineSpan(self.offset, len(block), items(lines), 0, self.number)
            self.offset += len(block)
            self.number += len(lines) - (not whole)
            return [run] if run.lines else []
        return self._with_long_ones(lines, whole)

    def _with_long_ones(self, lines: list[bytes], whole: bool) -> list[LineSpan]:
        runs: list[LineSpan] = []
        begun, first = self.offset, self.number
        kept: list[bytes] = []
        last = len(lines) - 1
        for index, line in enumerate(lines):
            size = len(line) + (whole or index < last)
            if len(line) > self._longest:
                if found := items(kept):
                    runs.append(LineSpan(begun, self.offset - begun, found, 0, first))
                runs.append(LineSpan(self.offset, size, [], len(line), self.number))
                begun, first, kept = self.offset + size, self.number + 1, []
            else:
                kept.append(line)
            self.offset += size
            self.number += size > len(line)
        if found := items(kept):
            runs.append(LineSpan(begun, self.offset - begun, found, 0, first))
        return runs


def items(lines: list[bytes]) -> list[bytes]:
    """The lines that are items."""
    if b"" in lines or b"\r" in lines:
        return [line for line in lines if line and line != b"\r"]
    return lines


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a span that are items, from its bytes."""
    return items(content.split(b"\n"))
