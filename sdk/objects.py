"""Object stores by obstore: S3, GCS, Azure, a local folder and memory, one code path.

The one file that knows the client library. Reads are pinned to the version that was seen first, and every answer is
held against it, also where a store ignores conditions: content is never mixed of two versions.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
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

from .model.errors import NotConnected, TailraceError
from .place import SCHEMES, Place

#: Stores whose listings come in the order of keys.
SORTED = ("s3", "gs", "az", "memory")
#: The client tries a request so often, and for so many seconds, before it says that the store is away.
RETRIES = 3
RETRY_SECONDS = 15.0


class Gone(TailraceError):
    """There is no such object (any more)."""


class Replaced(TailraceError):
    """The object is another version than the one asked for."""


class Listed(NamedTuple):
    """An object as a listing shows it."""

    key: str
    etag: str


class Facts(NamedTuple):
    """An object as it was found. `version` pins it in later reads; `etag` as in `Listed`."""

    key: str
    size: int
    modified: float
    version: str
    etag: str
    gzip: bool


class ObjectStore:
    """One place. Every method may raise NotConnected, saying what to do; those of one object Gone and Replaced.

    `client` stands for a store that exists already, such as one in memory."""

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
        """All objects whose keys are greater than `after`, so many at a time; sorted where the store does that. Some
        stores do not know where to begin and list everything: what comes before is left out here too."""
        with self._explained(""):
            async for page in obstore.list(self._store, offset=after or None, chunk_size=size):
                if rest := [Listed(meta["path"], _bare(meta["e_tag"])) for meta in page if meta["path"] > after]:
                    yield rest

    async def facts(self, key: str, version: str = "") -> Facts:
        """What is known of an object without reading it."""
        with self._explained(key):
            found = await obstore.get_async(self._store, key, options=_options(version, head=True))
            return _checked(_facts(found), version)

    async def whole(self, key: str, most: int) -> tuple[Facts, bytes | None]:
        """An object as it is now; None instead of content that is longer than `most` bytes."""
        with self._explained(key):
            found = await obstore.get_async(self._store, key)
            facts = _facts(found)
            return facts, bytes(await found.bytes_async()) if facts.size <= most else None

    async def part(self, key: str, version: str, start: int, length: int) -> bytes:
        """Stored bytes of one version; `start` must be within it. Less at its end."""
        with self._explained(key):
            options = _options(version, range=(start, start + length))
            found = await obstore.get_async(self._store, key, options=options)
            _checked(_facts(found), version)
            return bytes(await found.bytes_async())

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
            raise NotConnected(f"{what}: {_refused(error)}") from None
        except (InvalidPathError, ValueError) as error:
            raise NotConnected(
                f"{what}: a key that this client cannot name stands in the way: {_first_line(error)}. Rename the "
                "object, or narrow the url"
            ) from None
        except (BaseError, OSError) as error:
            raise NotConnected(f"{what}{_why(error)}") from None


#: What an answer that is no success says of itself: its status, and its code in the store's words.
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")


def _why(error: BaseException) -> str:
    """Why a listing, or a request that is not about one object, failed: the client knows no kinds of those."""
    text = str(error)
    status = found[1] if (found := _STATUS.search(text)) else ""
    if "token request" in text:
        return (
            ": no credentials are to be had: give them under credentials, or write anonymous: true for a place that "
            f"is open to everybody: {_first_line(error)}"
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


def _facts(found: Any) -> Facts:
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
    return Facts(meta["path"], meta["size"], modified, version, _bare(etag), encoding in ("gzip", "x-gzip"))


def _options(version: str, **others: Any) -> Any:
    """How to ask for that version, and nothing else."""
    kind, _, value = version.partition(":")
    pin = {"v": {"version": value}, "e": {"if_match": value}}.get(kind, {})
    return {**others, **pin}


def _checked(facts: Facts, version: str) -> Facts:
    if version and facts.version != version:
        raise Replaced(f"{facts.key} was replaced")
    return facts


def _bare(etag: str | None) -> str:
    """Listings of some stores leave out the quotes."""
    return (etag or "").removeprefix("W/").strip('"')


def _first_line(error: BaseException) -> str:
    """The first line; instead of a document that begins there, the store's own word for what is the matter."""
    line, _, rest = str(error).partition("\n")
    if "<?xml" in line and (found := _CODE.search(line) or _CODE.search(rest)):
        line = f"{line.partition('<?xml')[0]}{found[1]}"
    return line[:400]
