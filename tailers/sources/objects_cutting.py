"""One object → its items: the whole object, or its lines; a part that cannot be handed out is refused with the reason,
and the rest goes on.

This file knows no positions. An object that is gone or became another version before anything of it was cut is absent;
an object of which a part was cut leaves one refused item, for all content that can no longer be read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

from ...foundation.gunzip import Undecodable
from ...foundation.object_content import Content
from ...foundation.objects import Gone, ObjectFacts, ObjectStore, Replaced, Unread
from ...model.reference import REFERENCE, Reference
from ...model.segment import Segment
from ...model.workload import Headers
from ..rules.segments import Cut, NextPlace
from ..rules.text_lines import Lines, LineSpan, items, lines_of

#: Objects up to this size are read as soon as they are looked at.
SMALL = 256 << 10


class Shape(NamedTuple):
    """The options of cutting objects into items; see `ObjectsOptions`."""

    lines: bool
    gzip: Literal["auto", "always", "never"]
    max_value: int
    max_line: int
    max_ratio: int
    block: int
    referable: bool
    headers: bool


class CutItems(NamedTuple):
    """A cut with its items: as many payloads as positions, none when its position is absent."""

    cut: Cut
    key: str
    modified: float
    payloads: list[bytes]
    headers: Headers = ()


class OpenedObject(NamedTuple):
    """An object that was looked at, with its bytes when they are few. `facts` None: it is not there, or not the version
    that was listed."""

    facts: ObjectFacts | None
    body: bytes | None = None


class Cutter:
    """Cuts the objects of one store into items."""

    def __init__(self, store: ObjectStore, shape: Shape) -> None:
        self._store = store
        self._shape = shape
        self._last: Content | None = None  # of the last read again, since the next one often lies behind it
        self._counted: tuple[str, str, dict[int, int]] = ("", "", {})  # lines before offsets of the object counted last
        self._placed: tuple[Segment | None, list[tuple[int, int]]] = (None, [])  # line and byte of each of its items

    async def look(self, key: str, etag: str) -> OpenedObject:
        """Looks at an object as it is now. `etag`: the version that was listed, if no other one will do."""
        shape = self._shape
        if not shape.lines and not shape.max_value:
            return OpenedObject(await self._facts(key, etag))
        try:
            facts, body = await self._store.whole(key, SMALL)
        except Gone:
            return OpenedObject(None)
        return OpenedObject(None) if _other(facts, etag) else OpenedObject(facts, body)

    async def cut(
        self, ordinal: int, key: str, etag: str, opened: OpenedObject, at: NextPlace
    ) -> AsyncIterator[list[CutItems]]:
        """Yields the parts of one object from `at` on, in order."""
        begun = at.ordinal == ordinal and bool(at.version)
        if begun:
            async for parts in self._go_on(ordinal, key, at):
                yield parts
            return
        facts = opened.facts
        if facts is not None and opened.body is None:
            facts = await self._facts(key, etag)  # the look was some time ago
        if facts is None:
            yield [_absent(ordinal, key)]
        elif self._shape.lines:
            async for parts in self._lines(ordinal, facts, opened.body, 0):
                yield parts
        else:
            yield [await self._whole(ordinal, facts, opened.body)]

    async def again(self, segment: Segment, key: str) -> CutItems:
        """The items of a segment, read again. Raises Gone, Replaced and Undecodable when that is not possible."""
        cut = Cut(*segment[1:])
        if cut.absent:
            return CutItems(cut, key, 0.0, [])
        try:
            facts = await self._store.facts(key, cut.version)
        except (Gone, Replaced):
            if cut.refused:
                return self._refused(cut, key, None)
            raise
        if cut.refused:
            return self._refused(cut, key, facts)
        if not self._shape.lines:
            return (await self._whole(cut.ordinal, facts, None))._replace(cut=cut)
        content = self._last
        if content is None or (content.key, content.version) != (key, cut.version) or content.offset > cut.offset:
            content = self._content(facts, None)
        self._last = None
        await content.seek(cut.offset)
        lines = lines_of(await content.up_to(cut.length))
        self._last = content
        if len(lines) != cut.items:
            raise Undecodable(f"{key} has other lines than when it was cut: was its max_line, or its gzip, changed?")
        return CutItems(cut, key, facts.modified, lines, self._headers(facts))

    async def place(self, segment: Segment, key: str, index: int) -> str:
        """The place of one item of a segment in words. Raises the errors of reading it."""
        if not self._shape.lines:
            return self._named(key, segment.version)
        if self._placed[0] != segment:
            self._placed = segment, await self._places(segment, key)
        if index >= len(self._placed[1]):
            raise Undecodable(f"{key} has other lines than when it was cut")
        number, offset = self._placed[1][index]
        return self._named(key, segment.version, offset, number)

    def about(self, segment: Segment, key: str) -> str:
        """The place of a segment in words."""
        if not self._shape.lines:
            return self._named(key, segment.version)
        end = segment.offset + segment.length
        return f"{self._named(key, segment.version, segment.offset)} to {end}, of which the line was not counted"

    async def _places(self, segment: Segment, key: str) -> list[tuple[int, int]]:
        facts = await self._store.facts(key, segment.version)
        if (number := await self._lines_before(facts, segment.offset)) < 0:
            raise Undecodable(f"{key} ends before byte {segment.offset}")
        content = self._content(facts, None)
        await content.seek(segment.offset)
        found, offset = list[tuple[int, int]](), segment.offset
        for line in (await content.up_to(segment.length)).split(b"\n"):
            number += 1
            if items([line]):
                found.append((number, offset))
            offset += len(line) + 1
        return found

    async def touch(self, key: str) -> None:
        """Asks for an object's content, without reading it. Raises the errors of that."""
        await self._store.whole(key, -1)

    def unreadable(self, cut: Cut, key: str, why: str) -> CutItems:
        """Refused items for a cut, or for the rest of an object, that the store will not let us read."""
        where = self._named(key, cut.version, cut.offset)
        part = self._refused(cut._replace(refused=f"{where} cannot be read, though others can: {why}"), key, None)
        return part._replace(payloads=part.payloads * cut.items)

    async def _facts(self, key: str, etag: str) -> ObjectFacts | None:
        try:
            facts = await self._store.facts(key)
        except Gone:
            return None
        return None if _other(facts, etag) else facts

    async def _go_on(self, ordinal: int, key: str, at: NextPlace) -> AsyncIterator[list[CutItems]]:
        try:
            facts = await self._store.facts(key, at.version)
        except (Gone, Replaced) as error:
            yield [self._rest(ordinal, key, at.version, at.offset, 0, None, str(error))]
            return
        async for parts in self._lines(ordinal, facts, None, at.offset):
            yield parts

    async def _lines(
        self, ordinal: int, facts: ObjectFacts, body: bytes | None, offset: int
    ) -> AsyncIterator[list[CutItems]]:
        content = self._content(facts, body)
        lines = Lines(self._shape.max_line, offset)
        some = offset > 0
        headers = self._headers(facts)
        before: int | None = 0 if offset == 0 else None  # lines before `offset`; counted when one is to be named
        piece, failure = await _read(content, offset)
        while piece:
            runs = lines.feed(piece)
            piece, failure = await _read(content)  # ahead, so that the last part is known to be the last
            if not piece and failure is None:
                runs += lines.finish()
            if runs:
                some = True
                if before is None and any(run.too_long for run in runs):
                    before = await self._lines_before(facts, offset)
                parts = [self._run(ordinal, facts, run, headers, before) for run in runs]
                if not piece and failure is None:
                    parts[-1] = parts[-1]._replace(cut=parts[-1].cut._replace(end=True))
                yield parts
        if isinstance(failure, Unread):
            raise failure
        if failure is not None and (some or isinstance(failure, Undecodable)):
            if before is None:
                before = await self._lines_before(facts, offset)
            number = 0 if before < 0 else before + lines.number
            yield [self._rest(ordinal, facts.key, facts.version, lines.offset, number, facts, str(failure))]
        elif not some:
            yield [_absent(ordinal, facts.key)]

    async def _lines_before(self, facts: ObjectFacts, offset: int) -> int:
        """The number of lines before an offset; -1: they cannot be read any more."""
        key, version, known = self._counted
        if (key, version) != (facts.key, facts.version):
            self._counted = facts.key, facts.version, (known := {0: 0})
        if offset in known:
            return known[offset]
        content, begin = self._content(facts, None), max(each for each in known if each <= offset)
        piece, failure = await _read(content, begin)
        while content.offset < offset and piece:
            known[content.offset] = known[content.offset - len(piece)] + piece.count(b"\n")
            piece, failure = await _read(content)
        begin = content.offset - len(piece)
        if begin + len(piece) < offset or failure is not None:
            return -1
        known[offset] = known[begin] + piece.count(b"\n", 0, offset - begin)
        return known[offset]

    def _run(self, ordinal: int, facts: ObjectFacts, run: LineSpan, headers: Headers, before: int | None) -> CutItems:
        if not run.too_long:
            cut = Cut(len(run.lines), ordinal, facts.version, run.offset, run.length)
            return CutItems(cut, facts.key, facts.modified, run.lines, headers)
        number = 0 if before is None or before < 0 else before + run.number
        where = self._named(facts.key, facts.version, run.offset, number)
        why = f"{where}: the line has {run.too_long} bytes, more than the {self._shape.max_line} of max_line"
        return self._refused(Cut(1, ordinal, facts.version, run.offset, run.length, why), facts.key, facts)

    async def _whole(self, ordinal: int, facts: ObjectFacts, body: bytes | None) -> CutItems:
        shape, gzip = self._shape, self._gzip(facts)
        cut = Cut(1, ordinal, facts.version, 0, facts.size, end=True)
        if shape.max_value and (facts.size <= shape.max_value or gzip):
            try:
                payload = await self._content(facts, body).up_to(shape.max_value + 1)
            except Undecodable as error:
                where = self._named(facts.key, facts.version)
                return self._refused(cut._replace(refused=f"{where}: {error}"), facts.key, facts)
            except (Gone, Replaced):
                return _absent(ordinal, facts.key)
            if len(payload) <= shape.max_value:
                return CutItems(cut, facts.key, facts.modified, [payload], self._headers(facts))
        if not shape.referable:
            where = self._named(facts.key, facts.version)
            why = f"{where} has more than the {shape.max_value} bytes of max_value, and memory has no reference"
            return self._refused(cut._replace(refused=why), facts.key, facts)
        reference = Reference(
            self._store.place.url, facts.key, facts.size, facts.modified, facts.version, gzip
        ).encode()
        return CutItems(cut, facts.key, facts.modified, [reference], (REFERENCE, *self._headers(facts)))

    def _rest(
        self, ordinal: int, key: str, version: str, offset: int, number: int, facts: ObjectFacts | None, why: str
    ) -> CutItems:
        """All content behind `offset`, which is in line `number`, as one refused item."""
        said = f"{self._named(key, version, offset, number)}: from there on its content cannot be read: {why}"
        return self._refused(Cut(1, ordinal, version, offset, 0, said, end=True), key, facts)

    def _named(self, key: str, version: str, offset: int = 0, number: int = 0) -> str:
        """An object, and the place in it, for a dead letter. `number` 0: the line's is not known."""
        told = version.partition(":")[2].strip('"')
        line = f", line {number}" if number else ", line 1" if not offset else ""
        return f"{key}{f', version {told}' if told else ''}{f'{line}, byte {offset}' if self._shape.lines else ''}"

    def _refused(self, cut: Cut, key: str, facts: ObjectFacts | None) -> CutItems:
        size, modified, gzip = (0, 0.0, False) if facts is None else (facts.size, facts.modified, self._gzip(facts))
        length = -1 if cut.end else cut.length
        reference = Reference(self._store.place.url, key, size, modified, cut.version, gzip, cut.offset, length)
        return CutItems(cut, key, modified, [reference.encode()], (REFERENCE,))

    def _gzip(self, facts: ObjectFacts) -> bool:
        told = self._shape.gzip
        return told == "always" or (told == "auto" and (facts.gzip or facts.key.endswith((".gz", ".gzip"))))

    def _content(self, facts: ObjectFacts, body: bytes | None) -> Content:
        return Content(
            self._store,
            facts.key,
            facts.version,
            facts.size,
            gzip=self._gzip(facts),
            block=self._shape.block,
            most_ratio=self._shape.max_ratio,
            body=body,
        )

    def _headers(self, facts: ObjectFacts) -> Headers:
        if not self._shape.headers:
            return ()
        return (("object-key", facts.key), ("object-version", facts.version))


async def _read(content: Content, offset: int = 0) -> tuple[bytes, Exception | None]:
    """The next piece, from `offset` on; or the error after which no more of the object can be read."""
    try:
        if offset:
            await content.seek(offset)
        return await content.piece(), None
    except (Gone, Replaced, Undecodable, Unread) as error:
        return b"", error


def _other(facts: ObjectFacts, etag: str) -> bool:
    """Whether an object is not the version that was listed."""
    return bool(etag and facts.etag and facts.etag != etag)


def _absent(ordinal: int, key: str) -> CutItems:
    return CutItems(Cut(1, ordinal, "", 0, 0, absent=True, end=True), key, 0.0, [])
