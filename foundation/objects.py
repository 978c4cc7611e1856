"""Object stores through obstore: S3, GCS, Azure, a local folder and memory, one code path.

No other file knows the client library. Reads are pinned to the version that was seen first, and every answer is checked
against it, also where a store ignores conditions: content is never mixed of two versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import from_url

from ..model.errors import NotConnected, TailraceError
from .clock import SYSTEM_CLOCK
from .folder import NoFile
from .local_objects import LocalObjects, etag_of
from .object_places import RETRY_SECONDS, Place, client_settings
from .s3_listing import Raw, bucket_birth, raw_pages, secrets_of

#: Stores that can list in the order of keys.
SORTED = ("s3", "gs", "az", "memory")
#: Stores of which the client library takes a slash at the end of a key away.
SLASHED = ("s3", "gs", "az")


class Gone(TailraceError):
    """There is no such object (any more)."""


class Replaced(TailraceError):
    """The object is another version than the one asked for."""


class Unread(NotConnected):
    """One object could not be read. `refused`: the store refuses it, or no client can name it; otherwise the fault may
    lie with the object or the store."""

    def __init__(self, message: str, *, refused: bool) -> None:
        super().__init__(message)
        self.refused = refused


class Listed(NamedTuple):
    """An object as a listing shows it."""

    key: str
    etag: str


class ObjectFacts(NamedTuple):
    """An object as it was found. `version` pins it in later reads; `etag` as in `Listed`."""

    key: str
    size: int
    modified: float
    version: str
    etag: str
    gzip: bool


class ObjectStore:
    """One place of objects. Every method may raise NotConnected, saying what to do; methods about one object also Gone,
    Replaced and Unread.

    `client` stands for a store that exists already, such as one in memory.
    """

    def __init__(self, place: Place, client: Any = None) -> None:
        self.place = place
        self._client = client
        self._local = None
        if place.scheme == "file":
            self._local = LocalObjects(place.url, place.timeout)
        self._birth = ""
        self._has_odd_keys = False  # which the client library cannot name

    @property
    def _store(self) -> Any:
        if self._client is None:
            with self._explained(""):
                self._client = from_url(self.place.url, **client_settings(self.place))
        return self._client

    async def birth(self) -> str:
        """The moment when the place was made, which tells it from another one of its name; empty where nobody says it.
        Amazon's dates change with a bucket's policy, and Google and Azure need calls that this client has not."""
        if self._local is not None:
            with self._explained(""):
                return await self._local.birth()
        host = urlsplit(self.place.endpoint).hostname or ""
        if self.place.scheme != "s3" or not host or f".{host}".endswith((".amazonaws.com", ".amazonaws.com.cn")):
            return ""
        secrets = secrets_of(self.place)
        return "" if secrets is None else await bucket_birth(self.place, secrets, SYSTEM_CLOCK.wall())

    def hold_to(self, birth: str) -> None:
        """Refuses places with another birth from now on, by NotConnected."""
        self._birth = birth
        if self._local is not None:
            self._local.hold_to(birth)

    async def pages(self, after: str, size: int, *, rising: bool = False) -> AsyncIterator[list[Listed]]:
        """Yields all objects, in pages of about `size`, in the order in which the store lists them; an object may come
        twice. `after`: only those whose keys are greater. `rising`: the keys must rise, and NotConnected is raised
        where one does not; in a local folder they never do."""
        if self._birth and self._local is None and await self.birth() not in ("", self._birth):
            raise NotConnected(f"{self.place.url}: it is another bucket than the one that was read before")
        with self._explained(""):
            async for page in self._files(size) if self._local else self._objects(after, size, rising):
                if wanted := [each for each in page if each.key > after]:
                    yield wanted

    async def _files(self, size: int) -> AsyncIterator[list[Listed]]:
        assert self._local is not None
        async for page in self._local.pages(size):
            yield [Listed(key, etag_of(found)) for key, found in page]

    async def _objects(self, after: str, size: int, rising: bool) -> AsyncIterator[list[Listed]]:
        """Yields pages. The client library fails on a page with a key that it cannot name: then the place is listed by
        the protocol itself, in the order of keys from there on, else from the beginning."""
        at = after
        strict = self.place.scheme == "s3" and not after.endswith("/")  # others may begin at an earlier key
        if not self._has_odd_keys and not offence(after):
            try:
                async for page in obstore.list(self._store, offset=after.removesuffix("/") or None, chunk_size=size):
                    rows = [Raw(meta["path"], meta["e_tag"] or "", meta["size"]) for meta in page]
                    if rising:
                        found, at = _risen(rows, at, strict or at != after, self.place.url)
                    else:
                        found, at = await self._with_slashes(rows, at), rows[-1].key if rows else at
                    yield found
                return
            except InvalidPathError:
                if self.place.scheme != "s3":
                    raise
        self._has_odd_keys = not rising
        secrets = secrets_of(self.place)
        if secrets is None and not self.place.anonymous:
            raise InvalidPathError(
                "give access_key_id and secret_access_key, in the file or by the environment: then a listing gets past "
                "such keys"
            )
        async for rows in raw_pages(self.place, secrets, at if rising else "", SYSTEM_CLOCK.wall):
            named = [_without_slash(each) for each in rows]
            if rising:
                found, at = _risen(named, at, True, self.place.url)
                yield found
            else:
                yield [_row(each.key, each) for each in named if each.key]

    async def _with_slashes(self, rows: Sequence[Raw], last: str) -> list[Listed]:
        """The rows of a page, in any order; `last` is the key before them. The client library takes a slash at the
        end of a key away: where a key comes twice, or behind one that sorts between it and the same with a slash, the
        store is asked."""
        found: list[Listed] = []
        seen: set[str] = set()
        for each in rows:
            key = each.key
            if key:
                found.append(_row(key, each))
            if each.size and (not key or key in seen or key <= last < f"{key}/") and await self._is_slashed(key):
                found.append(_row(f"{key}/", each))
            seen.add(key)
            last = key
        return found

    async def _is_slashed(self, key: str) -> bool:
        """Whether there is an object with content whose key is `key` and a slash."""
        if not key:
            return True
        with contextlib.suppress(InvalidPathError, StopAsyncIteration):
            page = await anext(aiter(obstore.list(self._store, prefix=key, chunk_size=1000)))
            return any(meta["path"] == key and meta["size"] for meta in page)
        return False

    async def facts(self, key: str, version: str = "") -> ObjectFacts:
        """The facts of an object, without reading it."""
        async with self._asking(key):
            if self._local is not None:
                return _checked(_of_file(key, await self._local.facts(key)), version)
            found = await obstore.get_async(self._store, key, options=_options(version, head=True))
            return _checked(_facts(found), version)

    async def whole(self, key: str, most: int) -> tuple[ObjectFacts, bytes | None]:
        """An object as it is now; None instead of content that is longer than `most` bytes."""
        async with self._asking(key):
            if self._local is not None:
                file, content = await self._local.read(key, most)
                return _of_file(key, file), content
            found = await obstore.get_async(self._store, key)
            facts = _facts(found)
            return facts, bytes(await found.bytes_async()) if facts.size <= most else None

    async def part(self, key: str, version: str, start: int, length: int) -> bytes:
        """Reads stored bytes of one version; `start` must be within it. Fewer at its end."""
        async with self._asking(key):
            if self._local is not None:
                file, content = await self._local.part(key, start, length)
                _checked(_of_file(key, file), version)
                return content
            options = _options(version, range=(start, start + length))
            found = await obstore.get_async(self._store, key, options=options)
            _checked(_facts(found), version)
            return bytes(await found.bytes_async())

    @contextlib.asynccontextmanager
    async def _asking(self, key: str) -> AsyncIterator[None]:
        """Bounds the time of a request about one object as the client does, which knows no bound in a local folder."""
        local = self._local is not None
        if local and (not key or "\0" in key or {"", ".", ".."} & set(key.split("/"))):
            raise Unread(f"no file can be called {key!r}", refused=True)
        if not local and (begins := key if key.endswith("/") else offence(key)):
            raise _nameless(key, begins)
        seconds = self.place.timeout if local else 2 * self.place.timeout + RETRY_SECONDS
        with self._explained(key):
            try:
                async with asyncio.timeout(seconds):
                    yield
            except TimeoutError:
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            except (NotFoundError, FileNotFoundError):
                if self.place.scheme in SLASHED and await self._is_slashed(key):
                    raise _nameless(f"{key}/", f"{key}/") from None
                raise

    @contextlib.contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        what = f"{self.place.url}: {key}" if key else self.place.url
        try:
            yield
        except NoFile as error:
            raise Unread(f"{what}: {error}", refused=True) from None
        except (NotFoundError, FileNotFoundError, NotADirectoryError) as error:
            if key:
                raise Gone(f"{what} is gone") from None
            raise NotConnected(f"{what} is not there: {_first_line(error)}") from None
        except PreconditionError:
            raise Replaced(f"{what} was replaced") from None
        except (UnauthenticatedError, PermissionDeniedError, PermissionError) as error:
            raise _unread(key, f"{what}: {_refused(error)}", True) from None
        except (InvalidPathError, ValueError) as error:
            raise NotConnected(
                f"{what}: a key that this client cannot name stands in the way: {_first_line(error)}. Rename the "
                "object, or narrow the url"
            ) from None
        except (BaseError, OSError) as error:
            raise _unread(key, f"{what}{_why(error)}", _is_refusal(error)) from None


def _unread(key: str, words: str, refused: bool) -> NotConnected:
    return Unread(words, refused=refused) if key else NotConnected(words)


def _is_refusal(error: BaseException) -> bool:
    """Whether the store refuses this request, rather than cannot answer now."""
    found = _STATUS.search(str(error))
    return found is not None and found[1].startswith("4") and found[1] not in ("408", "425", "429")


def _nameless(key: str, begins: str) -> Unread:
    others = f", nor others that begin with {begins!r}" if begins != key else ", since it ends in a slash"
    return Unread(f"no client can name the key {key!r}{others if not key.endswith('//') else ''}", refused=True)


def _row(key: str, row: Raw) -> Listed:
    return Listed(key, "" if key.endswith("/") or offence(key) else _bare(row.etag))


def _without_slash(row: Raw) -> Raw:
    """The row of an empty object that stands for a folder, as the client library has it; any other row as it is."""
    return row if row.size or offence(row.key) else row._replace(key=row.key.removesuffix("/"))


def _risen(rows: Sequence[Raw], at: str, strict: bool, url: str) -> tuple[list[Listed], str]:
    """The rows of a page behind the key `at`, and the last key. A row that rises only with a slash behind its key is
    that of a key with one. Not `strict`: the first rows may come before `at`. Raises NotConnected."""
    found: list[Listed] = []
    for row in rows:
        key = row.key if row.key > at else f"{row.key}/"
        if key > at:
            strict, at = True, key
            if key == row.key or row.size:
                found.append(_row(key, row))
        elif strict:
            raise NotConnected(
                f"{url}: the store lists {row.key!r} behind {at!r}: that is not the order of keys, and what it lists "
                'late would never be found. Write "mode: inventory", which needs no order'
            )
    return found, at


#: The status of an answer that is no success.
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")


def _why(error: BaseException) -> str:
    """The reason why a listing, or a request that is not about one object, failed: the client has no classes for it."""
    text = str(error)
    status = found[1] if (found := _STATUS.search(text)) else ""
    if "token request" in text:
        return (
            ": no credentials were found: give them under credentials, or write anonymous: true for a place that is "
            f"open to everybody: {_first_line(error)}"
        )
    if "Account must be specified" in text:
        return ": the account is not known: write its account_name under credentials"
    if status in ("401", "403"):
        return f": {_refused(error)}"
    if status == "404":
        return f" is not there: {_first_line(error)}"
    return f": {_first_line(error)}"


def _refused(error: BaseException) -> str:
    return f"the store refuses us; check credentials and policy: {_first_line(error)}"


def _of_file(key: str, found: os.stat_result) -> ObjectFacts:
    etag = etag_of(found)
    return ObjectFacts(key, found.st_size, found.st_mtime, f'e:"{etag}"', etag, False)


def _facts(found: Any) -> ObjectFacts:
    meta: Mapping[str, Any] = found.meta
    modified = meta["last_modified"].timestamp()
    etag = meta["e_tag"] or ""
    if meta["version"]:
        version = f"v:{meta['version']}"
    elif etag:
        version = f"e:{etag}"
    else:
        version = f"m:{meta['size']}-{modified}"
    encoding = str(found.attributes.get("Content-Encoding", "")).lower()
    return ObjectFacts(meta["path"], meta["size"], modified, version, _bare(etag), encoding in ("gzip", "x-gzip"))


def _options(version: str, **others: Any) -> Any:
    """Options of a request for that version, and for no other."""
    kind, _, value = version.partition(":")
    pin = {"v": {"version": value}, "e": {"if_match": value}}.get(kind, {})
    return {**others, **pin}


def _checked(facts: ObjectFacts, version: str) -> ObjectFacts:
    if version and facts.version != version:
        raise Replaced(f"{facts.key} was replaced")
    return facts


def _bare(etag: str | None) -> str:
    """The etag without quotes, since listings of some stores leave them out."""
    return (etag or "").removeprefix("W/").strip('"')


def _first_line(error: BaseException) -> str:
    """First line of an error; instead of a document that begins there, the store's own code for the fault."""
    line, _, rest = str(error).partition("\n")
    if "<?xml" in line and (found := _CODE.search(line) or _CODE.search(rest)):
        line = f"{line.partition('<?xml')[0]}{found[1]}"
    return line[:400]


# Stores take any text for a key. The client library knows keys as paths: without empty parts, `.` or `..` as a part,
# and control characters. It takes away a slash at the end: such a key is the empty object that stands for a folder.


def offence(key: str) -> str:
    """The beginning of a key, up to the place that makes it impossible to name; no key that begins so can be named.
    Empty: it can be named."""
    start = 0
    for part in key.removesuffix("/").split("/"):
        end = start + len(part)
        for place in range(start, end):
            if key[place] < " " or key[place] == "\x7f":
                return key[: place + 1]
        if part in ("", ".", ".."):
            return key[: end + 1]
        start = end + 1
    return ""
