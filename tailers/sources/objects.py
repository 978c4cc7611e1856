"""Objects of a store as a stream: each once, whole or line by line, in the order in which a listing finds them.

The inventory knows which objects were seen, and segments know which positions are which bytes of them; so frontier,
ledger, audit and order count in plain positions, and a restart goes on in the middle of an object.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ...foundation.config import Bytes, Seconds
from ...foundation.lifecycle import cancel
from ...foundation.object_places import Place
from ...foundation.objects import ObjectStore
from ...model.errors import NotConnected, Unavailable
from ...model.life import Life, OnRecreated
from ...model.segment import Segment
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.checkpoints.lives import Lives
from ...stores.inventory.inventory import Inventory
from ...stores.segments.segments import Segments
from ..registry import Environment
from ..rules.segments import within
from ..rules.unreadable import Unreadable
from .listing import Patterns
from .objects_cutting import CutItems, Cutter, Shape
from .objects_feeding import Feeder, Loaded, weight
from .objects_listing import Lister, ListingProgress

#: Seconds for which objects are read again at most, to say in which lines items lie.
LONGEST_LOOK = 5.0


class ObjectsOptions(Place):
    """Options of an object source: the place (see `Place`), which objects of it, and how they become items.

    mode       inventory: list everything, hand out new objects. lexicographic: list from the last key on, for places
               whose keys rise with time
    overlap    lexicographic: so many of the greatest keys seen are looked at again, for objects that come late
    versions   inventory: an object that is replaced is handed out again
    include    keys to take, as glob patterns (one without a slash is matched against the last part of a key)
    exclude    keys to leave out
    format     whole: an object is an item; jsonl: each of its lines is
    gzip       auto: keys that end in .gz, and objects whose Content-Encoding is gzip; always; never
    max_ratio  content may be so many times as long as its gzip
    max_value  whole: largest object handed out as its content; larger ones by reference. 0: all by reference
    max_line   jsonl: longest line handed out
    block      bytes read at once
    headers    each item has the headers object-key and object-version
    poll       seconds between listings
    once       stop listing after the first one
    on_recreated  a place that is another one than the one that was read (deleted and made again, another disk): stop:
               the tailer stops and says so; from_start: all that is in it is read
    """

    mode: Literal["inventory", "lexicographic"] = "inventory"
    overlap: int = Field(1000, ge=0, le=1_000_000)
    versions: bool = False
    include: tuple[str, ...] = Field(("*",), min_length=1)
    exclude: tuple[str, ...] = ()
    format: Literal["whole", "jsonl"] = "whole"
    gzip: Literal["auto", "always", "never"] = "auto"
    max_ratio: int = Field(200, ge=1, le=1100)
    max_value: Bytes = Field(1 << 20, ge=0, le=4 << 20)
    max_line: Bytes = Field(1 << 20, ge=1, le=4 << 20)
    block: Bytes = Field(2 << 20, ge=1 << 10, le=64 << 20)
    headers: bool = False
    poll: Seconds = Field(10.0, ge=0.01, le=86_400)
    once: bool = False
    on_recreated: OnRecreated = "stop"

    @field_validator("overlap", "versions", "max_value", "max_line")
    @classmethod
    def _means_something(cls, value: Any, about: ValidationInfo) -> Any:
        """A key that is given must have a meaning beside the others."""
        mode, form = about.data.get("mode"), about.data.get("format")
        why = ""
        if about.field_name == "versions" and mode == "lexicographic" and value:
            why = 'with "mode: lexicographic" a key is never looked at again; leave it out, or write "mode: inventory"'
        elif about.field_name == "overlap" and mode == "inventory":
            why = '"mode: inventory" lists everything; leave it out, or write "mode: lexicographic"'
        elif about.field_name == "max_line" and form == "whole":
            why = '"format: whole" has no lines; leave it out, or write "format: jsonl"'
        elif about.field_name == "max_value" and form == "jsonl":
            why = 'lines are never handed out by reference; leave it out, or write "format: whole"'
        if why:
            raise PydanticCustomError("objects", "{reason}", {"reason": why})
        return value

    def shape(self) -> Shape:
        """The options of cutting objects into items."""
        return Shape(
            lines=self.format == "jsonl",
            gzip=self.gzip,
            max_value=self.max_value,
            max_line=self.max_line,
            max_ratio=self.max_ratio,
            block=self.block,
            referable=self.scheme != "memory",
            headers=self.headers,
        )

    def fingerprint(self) -> str:
        """A short hash of the options on which the meaning of positions depends."""
        chosen = json.dumps([self.url.rstrip("/"), self.endpoint, self.versions, self.format, self.gzip])
        return hashlib.sha256(chosen.encode()).hexdigest()[:8]


class ObjectsSource:
    """Implements `sdk.source.StreamSource`. `tailer` and the options' `fingerprint` name the source in inventory and
    segments; its only partition bears that fingerprint, so that another place begins anew. `client` is for places in
    memory."""

    capabilities = Capabilities(delays=False, replays=True, places=True)

    def __init__(
        self,
        options: ObjectsOptions,
        inventory: Inventory,
        segments: Segments,
        tailer: str,
        client: Any = None,
        lives: Lives | None = None,
    ) -> None:
        self.partition = options.fingerprint()
        self._options = options
        self._inventory = inventory
        self._segments = segments
        self._tailer = tailer
        self._name = f"{tailer}:{self.partition}"
        self._lives = lives
        self._is_known = lives is None  # which life of the place this is
        self._store = ObjectStore(options, client)
        self._progress = ListingProgress()
        self._unreadable = Unreadable()
        self._feeder: Feeder | None = None
        self._lister: Lister | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._again = self._new_feeder()  # for reads again by position
        self._loaded: tuple[Segment | None, CutItems | None] = (None, None)  # the segment that was read again last
        if options.mode == "lexicographic":
            self.capabilities = replace(self.capabilities, replays=False)  # segments of settled lines are forgotten

    @property
    def idle(self) -> bool:
        """Whether a listing was done, and everything that was listed was read."""
        feeder, lister = self._feeder, self._lister
        return bool(feeder and lister and lister.listings and feeder.idle.is_set() and not feeder.ready)

    async def open(self, positions: Mapping[str, int]) -> None:
        if self._feeder is not None:
            return
        await self._identify(meet=True)
        options, self._progress = self._options, ListingProgress()
        feeder = self._feeder = self._new_feeder()
        lister = self._lister = Lister(
            self._store,
            self._inventory,
            self._name,
            Patterns(options.include, options.exclude),
            versions=options.versions,
            overlap=options.overlap if options.mode == "lexicographic" else None,
            found=feeder.found,
            progress=self._progress,
        )
        self._start(feeder.run(positions.get(self.partition, 0)), "feed")
        self._start(lister.run(options.poll, options.once), "list")
        await feeder.changed.wait()

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while (feeder := self._feeder) is not None:
            feeder.changed.clear()
            if feeder.ready:
                return [self._take(feeder, limit, max_bytes)]
            self._raise_failure()
            try:
                async with asyncio.timeout_at(until):
                    await feeder.changed.wait()
            except TimeoutError:
                break
        return []

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        await self._identify()
        batch = StreamBatch(partition, [], [], [], [], [])
        ordered = sorted(positions)
        while ordered and partition == self.partition:
            segment = next(iter(await self._stored(self._segments.read(self._name, ordered[0], 1))), None)
            if segment is None:
                break
            chosen = within(segment, ordered)
            part = await self._part(segment) if chosen else None
            if part is not None and part.payloads:
                _add(batch, segment.first, part, chosen)
            ordered = ordered[max(1, len(chosen)) :]
        batch.absent = sorted(set(positions).difference(batch.positions))
        return batch

    async def places(self, partition: str, positions: Sequence[int]) -> dict[int, str]:
        """Key, version, line and byte of each item; of one that cannot be read again in time the bytes among which it
        lies."""
        await self._identify()
        found: dict[int, str] = {}
        until = asyncio.get_running_loop().time() + LONGEST_LOOK
        for position in sorted(positions) if partition == self.partition else ():
            segment = next(iter(await self._stored(self._segments.read(self._name, position, 1))), None)
            if segment is not None and segment.first <= position and not segment.refused:
                found[position] = await self._stored(self._again.place(segment, position - segment.first, until))
        return found

    async def _part(self, segment: Segment) -> CutItems | None:
        """A segment's items. The last segment is kept, since reads by position ask for the same one many times."""
        if self._loaded[0] != segment:
            self._loaded = (segment, await self._stored(self._again.load(segment)))
        return self._loaded[1]

    async def ends(self) -> dict[str, int]:
        """The end of the partition; an object that was not looked at yet counts as one item."""
        await self._identify()
        last = await self._segments.last(self._name)
        cut_to = 0 if last is None else last.ordinal + 1
        waiting = max(0, await self._inventory.end(self._name) - cut_to)
        return {self.partition: (0 if last is None else last.after) + waiting}

    async def settled_below(self, partition: str, position: int) -> None:
        """Forgets the segments of settled items, if the place is listed in the order of keys."""
        if self._options.mode != "lexicographic" or partition != self.partition:
            return
        for segment in await self._segments.read(self._name, max(0, position - 1), 1):
            if segment.ordinal > self._progress.settled:
                self._progress.settled = segment.ordinal
                await self._segments.trim(self._name, position)

    async def close(self) -> None:
        self._loaded = (None, None)
        feeder, self._feeder = self._feeder, None
        tasks, self._tasks = self._tasks, []
        if feeder is not None:
            feeder.changed.set()
        for task in tasks:
            with contextlib.suppress(NotConnected):
                await cancel(task)

    async def _identify(self, *, meet: bool = False) -> None:
        """Finds the life of the place, if it is not known yet. `meet`: looks at which place is there now. Raises
        PositionsGone when it is another one and the tailer is to stop there."""
        if self._lives is None or (self._is_known and not meet):
            return
        place = self._options.fingerprint()
        await self._lives.load()
        if meet:
            birth = await self._store.birth()
            await self._lives.meet(place, Life(birth), self._options.url)
            self._store.hold_to(birth)
        self.partition = self._lives.named(place)
        name, self._is_known = f"{self._tailer}:{self.partition}", True
        if name != self._name:
            self._name, self._loaded = name, (None, None)
            self._again = self._new_feeder()

    def _new_feeder(self) -> Feeder:
        cutter = Cutter(self._store, self._options.shape())
        room, noted = 2 * self._options.block, self._unreadable
        return Feeder(self._inventory, self._segments, self._name, cutter, self._progress, room, noted)

    def _start(self, work: Any, what: str) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name=f"{what}-{self._name}")
        feeder = self._feeder
        assert feeder is not None
        task.add_done_callback(lambda _: feeder.changed.set())
        self._tasks.append(task)

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and task.cancelled():  # not by `close`, which forgets them first
                raise NotConnected(f"{task.get_name()} was interrupted")
            if task.done() and (error := task.exception()) is not None:
                raise error

    async def _stored(self, call: Any) -> Any:
        try:
            return await call
        except NotConnected:
            raise
        except Unavailable as error:
            raise NotConnected(f"the inventory or segments of {self._name}: {error}") from error

    def _take(self, feeder: Feeder, limit: int, max_bytes: int) -> StreamBatch:
        """Takes items that are ready, within both bounds, at least one."""
        batch = StreamBatch(self.partition, [], [], [], [], [])
        while feeder.ready and limit > 0 and max_bytes > 0:
            loaded = feeder.ready[0]
            segment, part, start = loaded.segment, loaded.part, loaded.done
            if part.payloads:
                stop = _fitting(part.payloads, start, limit, max_bytes)
                max_bytes -= sum(map(len, part.payloads[start:stop]))
                limit -= stop - start
                _add(batch, segment.first, part, range(start, stop))
            else:
                stop = segment.items
                batch.absent.extend(range(segment.first + start, segment.after))
                limit -= 1
            loaded.done = stop
            if stop == segment.items:
                feeder.ready.popleft()
                feeder.took(weight(part))
        return batch


def _fitting(payloads: list[bytes], start: int, limit: int, max_bytes: int) -> int:
    """The end of the items from `start` on that fit into both bounds; at least one does."""
    stop = min(len(payloads), start + limit)
    if sum(map(len, payloads[start:stop])) <= max_bytes:
        return stop
    sizes = accumulate(map(len, payloads[start:stop]))
    return start + max(1, sum(size <= max_bytes for size in sizes))


def _add(batch: StreamBatch, first: int, part: CutItems, chosen: Sequence[int]) -> None:
    count = len(chosen)
    if part.cut.refused:  # several items, where an object that was cut before cannot be read any more
        batch.refused.update(dict.fromkeys(range(len(batch.positions), len(batch.positions) + count), part.cut.refused))
    if isinstance(chosen, range):
        batch.positions.extend(range(first + chosen.start, first + chosen.stop))
        batch.payloads.extend(part.payloads[chosen.start : chosen.stop])
    else:
        batch.positions.extend([first + index for index in chosen])
        batch.payloads.extend([part.payloads[index] for index in chosen])
    batch.times.extend([part.modified] * count)
    batch.keys.extend([part.key] * count)
    batch.headers.extend([part.headers] * count)


def build(options: ObjectsOptions, environment: Environment) -> ObjectsSource:
    """The source over one place. Another place, format or way of versions begins anew."""
    lives = Lives(environment.checkpoints, environment.tailer, options.on_recreated)
    return ObjectsSource(options, environment.inventory, environment.segments, environment.tailer, lives=lives)


KIND = SourceKind(
    "objects",
    "stream",
    ObjectsOptions,
    build,
    ObjectsSource.capabilities,
    extra="objects",
    description="objects of S3, GCS, Azure or a folder, whole or line by line",
    not_again="with `mode: lexicographic` it forgets where settled items were. To run the past again, point a tailer "
    "of another name at the same url with `mode: inventory`: it runs every object there once, and can be replayed",
)

__all__ = ["KIND", "Loaded", "ObjectsOptions", "ObjectsSource"]
