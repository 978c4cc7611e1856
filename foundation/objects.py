"""Object stores through obstore: S3, GCS, Azure, a local folder and memory, one code path.

No other file knows the client library. Reads are pinned to the version that was seen first, and every answer is checked
against it, also where a store ignores conditions: content is never mixed of two versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

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
from .object_keys import offence
from .object_places import SCHEMES, Place
from .s3_listing import raw_page, secrets_of

#: Stores whose listings come in the order of keys.
SORTED = ("s3", "gs", "az", "memory")
#: The client tries a request so often, and for so many seconds, before it says that the store is away.
RETRIES = 3
RETRY_SECONDS = 15.0


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

    @property
    def _store(self) -> Any:
        if self._client is None:
            with self._explained(""):
                self._client = from_url(self.place.url, **_settings(self.place))
        return self._client

    async def pages(self, after: str, size: int) -> AsyncIterator[list[Listed]]:
        """Yields all objects whose keys are greater than `after`, in pages of `size`; sorted where the store does that.
        Some stores cannot begin at a key and list everything: earlier keys are left out here too. Of keys that cannot
        be named and begin alike the first is among them, and the listing goes on behind them."""
        listing = self._sorted(after, size) if self.place.scheme in SORTED else self._unsorted(after, size)
        with self._explained(""):
            async for page in listing:
                yield page

    async def _sorted(self, after: str, size: int) -> AsyncIterator[list[Listed]]:
        """Yields pages in order. The client library fails on a page with a key that it cannot name: such a page is
        asked for by the protocol itself, and so are those behind it until one has no such key."""
        at = after
        while True:
            if not offence(at):
                try:
                    async for page in obstore.list(self._store, offset=at or None, chunk_size=size):
                        if rest := _listed(page, at):
                            yield rest
                            at = rest[-1].key
                    return
                except InvalidPathError:
                    if self.place.scheme != "s3":
                        raise
            before = at
            async for found, behind in self._raw(at):
                at = behind
                if found:
                    yield found
            if at == before:
                return

    async def _raw(self, at: str) -> AsyncIterator[tuple[list[Listed], str]]:
        """Yields pages behind a key, each with its last key, up to one in which every key can be named. Of keys that
        begin alike and cannot be named the first is enough."""
        secrets = secrets_of(self.place)
        if secrets is None and not self.place.anonymous:
            raise InvalidPathError(
                "give access_key_id and secret_access_key, in the file or by the environment: then a listing gets past "
                "such keys"
            )
        passed, odd = "", True
        while odd and (page := await raw_page(self.place, secrets, at, SYSTEM_CLOCK.wall())):
            if page[-1].key <= at:
                raise NotConnected(f"{self.place.url}: the store lists the same keys again, from {at!r} on")
            odd, found = False, []
            for key, etag in page:
                begins = offence(key)
                if not key:  # the folder that the place is
                    continue
                if not begins:
                    found.append(Listed(key.removesuffix("/"), _bare(etag)))
                elif begins != passed:
                    found.append(Listed(key, ""))
                odd, passed = odd or bool(begins), begins or passed
            at = page[-1].key
            yield found, at

    async def _unsorted(self, after: str, size: int) -> AsyncIterator[list[Listed]]:
        """Yields pages of a store that does not sort. A local folder goes on behind a name that cannot be one of a key,
        but loses the others of that page: so it is listed again one by one."""
        try:
            async for whole in obstore.list(self._store, offset=after or None, chunk_size=size):
                if rest := _listed(whole, after):
                    yield rest
            return
        except InvalidPathError:
            one_by_one = aiter(obstore.list(self._store, offset=after or None, chunk_size=1))
        while True:
            found: list[Listed] = []
            try:
                found = _listed(await anext(one_by_one), after)
            except StopAsyncIteration:
                return
            except InvalidPathError as error:
                with contextlib.suppress(InvalidPathError):  # a name that is no text
                    found = [Listed(self._unnameable(error), "")]
            if found:
                yield found

    def _unnameable(self, error: InvalidPathError) -> str:
        """The name in a local folder that an error is about. Raises the error when it names none."""
        found = _NAMED.match(str(error).partition("\n\nDebug source")[0])
        name = found[1].removeprefix("/") if found else ""
        if not offence(name):
            raise error
        return name

    async def facts(self, key: str, version: str = "") -> ObjectFacts:
        """The facts of an object, without reading it."""
        async with self._asking(key):
            found = await obstore.get_async(self._store, key, options=_options(version, head=True))
            return _checked(_facts(found), version)

    async def whole(self, key: str, most: int) -> tuple[ObjectFacts, bytes | None]:
        """An object as it is now; None instead of content that is longer than `most` bytes."""
        async with self._asking(key):
            found = await obstore.get_async(self._store, key)
            facts = _facts(found)
            return facts, bytes(await found.bytes_async()) if facts.size <= most else None

    async def part(self, key: str, version: str, start: int, length: int) -> bytes:
        """Reads stored bytes of one version; `start` must be within it. Fewer at its end."""
        async with self._asking(key):
            options = _options(version, range=(start, start + length))
            found = await obstore.get_async(self._store, key, options=options)
            _checked(_facts(found), version)
            return bytes(await found.bytes_async())

    @contextlib.asynccontextmanager
    async def _asking(self, key: str) -> AsyncIterator[None]:
        """Bounds the time of a request about one object as the client does, which knows no bound in a local folder."""
        if begins := offence(key):
            raise Unread(f"no client can name the key {key!r}, nor others that begin with {begins!r}", refused=True)
        local = self.place.scheme == "file"
        seconds = self.place.timeout if local else 2 * self.place.timeout + RETRY_SECONDS
        with self._explained(key):
            try:
                async with asyncio.timeout(seconds):
                    yield
            except TimeoutError:
                raise TimeoutError(f"no answer within {seconds:g} s") from None

    @contextlib.contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        what = f"{self.place.url}: {key}" if key else self.place.url
        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
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


def _listed(page: Iterable[Any], after: str) -> list[Listed]:
    return [Listed(meta["path"], _bare(meta["e_tag"])) for meta in page if meta["path"] > after]


#: The status of an answer that is no success.
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
#: The client's message about a key that it cannot name.
_NAMED = re.compile(r'.*?Path "(.*)"(?:: Encountered| contained)', re.DOTALL)
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


def _settings(place: Place) -> dict[str, Any]:
    if place.scheme in ("file", "memory"):
        return {}
    found: dict[str, Any] = {name: secret.get_secret_value() for name, secret in place.credentials.items()}
    if place.endpoint:
        found[SCHEMES[place.scheme][1]] = place.endpoint
    if place.region:
        found["region"] = place.region
    if place.anonymous:
        found["skip_signature"] = True
    found["client_options"] = {
        "timeout": timedelta(seconds=place.timeout),
        "connect_timeout": timedelta(seconds=min(5.0, place.timeout)),
        "allow_http": place.endpoint.startswith("http://"),
    }
    found["retry_config"] = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
    return found


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
