"""Object stores by obstore: S3, GCS, Azure, a local folder and memory, one code path.

The one file that knows the client library. Reads are pinned to the version that was seen first, and every answer is
held against it, also where a store ignores conditions: content is never mixed of two versions.
"""

from __future__ import annotations

import contextlib
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
        """All objects whose keys are greater than `after`, so many at a time; sorted where the store does that."""
        with self._explained(""):
            async for page in obstore.list(self._store, offset=after or None, chunk_size=size):
                yield [Listed(meta["path"], _bare(meta["e_tag"])) for meta in page]

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
            raise NotConnected(
                f"{what}: the store refuses us; check credentials and policy: {_first_line(error)}"
            ) from None
        except (InvalidPathError, ValueError) as error:
            raise NotConnected(
                f"{what}: a key that this client cannot name stands in the way: {_first_line(error)}. Rename the "
                "object, or narrow the url"
            ) from None
        except (BaseError, OSError) as error:
            raise NotConnected(f"{what}: {_first_line(error)}") from None


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
    return str(error).partition("\n")[0][:400]
