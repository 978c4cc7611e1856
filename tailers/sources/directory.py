"""A folder as a stream: new and changed files, in the order in which they were found.

The inventory gives each name and version a position, so a restart goes on at the checkpoint. A file that is gone when
its turn comes is noted and passed; one that changed meanwhile is handed out as it is now.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ...foundation.config import Bytes, Seconds
from ...foundation.folder import Folder, NoFile, birth_at
from ...foundation.lifecycle import cancel
from ...foundation.logger import Logger
from ...foundation.own_thread import OwnThread
from ...model.errors import NotConnected, Unavailable
from ...model.life import Life, OnRecreated
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.checkpoints.lives import Lives
from ...stores.inventory.inventory import Entries, Inventory, InventoryEntry
from ..registry import Environment
from .listing import Listing, Patterns, list_folder

log = Logger("tailrace.tailer")

#: Scanning takes at most this share of the time, however large the folder.
SCAN_SHARE = 0.05
#: Files offered to the inventory at once.
OFFER = 1000
#: Errors of this process, not of the file that it opens.
OUR_OWN = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class DirectoryOptions(BaseModel):
    """A folder to watch.

    path          the folder
    include       names to take, as glob patterns (one without a slash is matched against the file's own name)
    exclude       names to leave out
    recursive     also the folders in it
    follow_links  also folders and files behind links; a loop is refused
    payload       reference: JSON {"path", "name", "size", "modified"}; content: the file's bytes
    max_bytes     largest file handed out as content; larger ones become dead letters that say where they are
    poll          seconds between scans
    once          stop scanning after the first full listing
    on_recreated  a folder that is another one than the one that was read (deleted and made again, another disk):
                  stop: the tailer stops and says so; from_start: all that is in it is read
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(min_length=1)
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    follow_links: bool = False
    payload: Literal["reference", "content"] = "reference"
    max_bytes: Bytes = Field(4 << 20, ge=0, le=1 << 30)
    poll: Seconds = Field(1.0, ge=0.01, le=86_400)
    once: bool = False
    on_recreated: OnRecreated = "stop"


class DirectorySource:
    """Implements `sdk.source.StreamSource`. `name` names the folder in the inventory; without a `partition` it is the
    tailer's name, and the folder's fingerprint is added at the first call.

    partition  the only one: a folder has one order of discovery. It bears the folder's fingerprint, so that positions
               of one inventory are never taken for those of another (a checkpoint would pass files that nobody handled)
    vanished   number of files that were gone when their turn came
    refused    number of files too large (`max_bytes`), not readable, or no files any more; they become dead letters
    listed     set when the first full listing is done
    skipped    the names that the last listing did not enter or read, each with the reason
    """

    capabilities = Capabilities(delays=False, replays=True)

    def __init__(
        self,
        options: DirectoryOptions,
        inventory: Inventory,
        name: str,
        partition: str = "0",
        lives: Lives | None = None,
    ) -> None:
        self.partition = partition
        self.vanished = 0
        self.refused = 0
        self.listed = asyncio.Event()
        self.skipped: dict[str, str] = {}
        self._options = options
        self._thread = OwnThread(f"folder-{name}"[:60])
        self._root = Path(options.path)
        self._patterns = Patterns(options.include, options.exclude)
        self._inventory = inventory
        self._tailer = name
        self._name = name
        self._lives = lives
        self._birth = ""
        self._next = 0
        self._seen: dict[str, str] = {}  # versions by name at the last listing, so that only changes are offered
        self._scanner: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # something was found, the scanner failed, or the source was closed
        self._failure = ""
        self._took = 0.0  # seconds that the last listing took

    async def open(self, positions: Mapping[str, int]) -> None:
        if self._scanner is not None:
            return
        await self._identify(meet=True)
        self._next = positions.get(self.partition, 0)
        self._failure = ""
        self._seen = {}
        self._changed.clear()
        await self._offer(await self._listing())
        self._scanner = asyncio.create_task(self._scan(), name=f"scan-{self._name}")

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while self._scanner is not None:
            self._changed.clear()
            batch = await self._take(limit, max_bytes)
            if batch is not None:
                return [batch]
            if self._failure:
                raise NotConnected(self._failure)
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                break
        return []

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        await self._identify()
        found = Entries([], [], [])
        for position in sorted(positions):
            one = await self._inventory.read(self._name, position, 1)
            if one.positions == [position]:
                found.positions.append(position)
                found.names.extend(one.names)
                found.versions.extend(one.versions)
        batch = await self._thread.call(self._load, found, sys.maxsize)  # entries left out would count as taken away
        batch.absent = sorted(set(positions).difference(batch.positions))
        return batch

    async def ends(self) -> dict[str, int]:
        await self._identify()
        return {self.partition: await self._inventory.end(self._name)}

    async def close(self) -> None:
        scanner, self._scanner = self._scanner, None
        self._changed.set()
        self._thread.close()
        if scanner is not None:
            await cancel(scanner)

    async def _identify(self, *, meet: bool = False) -> None:
        """Finds the folder's fingerprint and its life, if they are not known yet: in the source's thread, since
        resolving the path may hang. `meet`: looks at which folder is there now. Raises PositionsGone when it is another
        one and the tailer is to stop there."""
        lives = self._lives
        if self.partition and (lives is None or not meet):
            return
        self._thread.moves(f"finding {self._root}")
        chosen = life = await self._thread.call(fingerprint, self._options)
        if lives is not None:
            await lives.load()
            if meet:
                try:
                    birth = await self._thread.call(birth_at, self._root)
                except OSError as error:
                    raise self._unreadable(error) from error
                await lives.meet(chosen, Life(birth), f"the folder {self._root}")
                self._birth = birth
            life = lives.named(chosen)
        if meet or not self.partition:  # nobody else asked meanwhile
            self._name, self.partition = f"{self._tailer}:{life}", life

    def _unreadable(self, error: OSError) -> NotConnected:
        return NotConnected(f"the folder {self._root} cannot be read: {error.strerror or error}")

    async def _scan(self) -> None:
        options = self._options
        while not options.once:
            await asyncio.sleep(max(options.poll, self._took / SCAN_SHARE))
            try:
                await self._offer(await self._listing())
            except Exception as error:  # the next read raises it, and the source is opened again
                if not isinstance(error, NotConnected):
                    log.exception("a scan failed", folder=str(self._root))
                self._failure = str(error) or type(error).__name__
                self._changed.set()
                return

    async def _listing(self) -> Listing:
        began = time.monotonic()
        options = self._options
        try:
            listing = await self._thread.call(
                list_folder,
                self._root,
                self._patterns,
                options.recursive,
                options.follow_links,
                self._birth,
                self._thread.moves,
            )
        except OSError as error:
            raise self._unreadable(error) from error
        self._took = time.monotonic() - began
        before, self.skipped = self.skipped, listing.skipped
        if fresh := [name for name in listing.skipped if name not in before]:
            why = listing.skipped[fresh[0]]
            log.warning("not listed", folder=str(self._root), names=len(fresh), first=fresh[0], why=why)
        return listing

    async def _offer(self, listing: Listing) -> None:
        """Offers the inventory the names that are new or changed since the last listing."""
        seen, self._seen = self._seen, dict(listing.entries)
        changed: list[InventoryEntry] = [entry for entry in listing.entries if seen.get(entry.name) != entry.version]
        for start in range(0, len(changed), OFFER):
            try:
                await self._inventory.offer(self._name, changed[start : start + OFFER])
            except Unavailable as error:
                self._seen = seen  # to be offered again; the inventory ignores the entries that it knows by then
                raise NotConnected(f"the inventory of {self._root}: {error}") from error
        # Not only what this listing made new: a former owner may have noted files that it never read.
        if await self._inventory_end() > self._next:
            self._changed.set()
        self.listed.set()

    async def _inventory_end(self) -> int:
        try:
            return await self._inventory.end(self._name)
        except Unavailable as error:
            raise NotConnected(f"the inventory of {self._root}: {error}") from error

    async def _take(self, limit: int, max_bytes: int) -> StreamBatch | None:
        try:
            entries = await self._inventory.read(self._name, self._next, limit)
        except Unavailable as error:
            raise NotConnected(f"the inventory of {self._root}: {error}") from error
        if not entries.positions:
            return None
        batch = await self._thread.call(self._load, entries, max_bytes)
        self._next = max([*batch.positions, *batch.absent]) + 1
        return batch

    def _load(self, entries: Entries, max_bytes: int) -> StreamBatch:
        """Loads the entries as items, until the bytes are used up; runs in the source's thread."""
        try:
            with Folder(self._root, follow=self._options.follow_links, birth=self._birth) as folder:
                return self._loaded(folder, entries, max_bytes)
        except OSError as error:  # an error of one file is noted at its item
            raise self._unreadable(error) from error

    def _loaded(self, folder: Folder, entries: Entries, max_bytes: int) -> StreamBatch:
        batch = StreamBatch(self.partition, [], [], [], [], [])
        for position, name in zip(entries.positions, entries.names, strict=True):
            if max_bytes <= 0:
                break
            self._thread.moves(f"reading {name}")
            try:
                modified, payload, refused = self._load_one(folder, name)
            except (FileNotFoundError, NotADirectoryError):
                self.vanished += 1
                batch.absent.append(position)
                continue
            except (NoFile, OSError) as error:
                if isinstance(error, OSError) and error.errno in OUR_OWN:
                    raise
                why = (
                    f"the file cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)
                )
                modified, payload, refused = 0.0, _as_json({"path": str(self._root / name), "name": name}), why
            if refused:
                self.refused += 1
                batch.refused[len(batch.positions)] = refused
            max_bytes -= len(payload)
            batch.positions.append(position)
            batch.times.append(modified)
            batch.keys.append(name)
            batch.headers.append(())
            batch.payloads.append(payload)
        return batch

    def _load_one(self, folder: Folder, name: str) -> tuple[float, bytes, str]:
        """A file's time of change, its payload, and why it cannot be handed out (then the payload says where it is)."""
        refused = ""
        if self._options.payload == "content":
            most = self._options.max_bytes
            found, content = folder.read(name, most)
            if content is not None:
                return found.st_mtime, content, ""
            refused = f"the file has {max(found.st_size, most + 1)} bytes, more than the {most} of max_bytes"
        else:
            found = folder.facts(name)
        facts = {
            "path": str(self._root / name),
            "name": name,
            "size": found.st_size,
            "modified": found.st_mtime,
        }
        return found.st_mtime, _as_json(facts), refused


def _as_json(facts: dict[str, object]) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode()


def fingerprint(options: DirectoryOptions) -> str:
    """A short hash of the folder and the patterns, which tells inventories apart."""
    chosen = json.dumps([str(Path(options.path).resolve()), options.include, options.exclude])
    return hashlib.sha256(chosen.encode()).hexdigest()[:12]


def build(options: DirectoryOptions, environment: Environment) -> DirectorySource:
    """The source over one folder. Another folder or other patterns make another inventory."""
    lives = Lives(environment.checkpoints, environment.tailer, options.on_recreated)
    return DirectorySource(options, environment.inventory, environment.tailer, "", lives)


KIND = SourceKind(
    "directory",
    "stream",
    DirectoryOptions,
    build,
    DirectorySource.capabilities,
    description="new and changed files of a folder",
)
