"""Lists a place of S3 by the protocol itself, for keys that the client library cannot name.

The library returns nothing of a page in which there is such a key. This file asks for the pages (ListObjectsV2,
signed as Amazon's "Signature Version 4" says) and takes any text for a key. It needs credentials in the file or the
environment; those of a machine's own identity do not serve.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from html import unescape
from typing import NamedTuple
from urllib.parse import quote, unquote_plus, urlsplit

from ..model.errors import NotConnected
from .object_places import Place
from .proxies import proxy_for

_OBJECT, _KEY, _ETAG, _SIZE, _MORE, _TOKEN, _BUCKET, _NAME, _MADE = (
    re.compile(f"<{name}>(.*?)</{name}>", re.DOTALL)
    for name in (
        *("Contents", "Key", "ETag", "Size", "IsTruncated", "NextContinuationToken"),
        *("Bucket", "Name", "CreationDate"),
    )
)
_EMPTY = hashlib.sha256(b"").hexdigest()
_MOST_BYTES = 64 << 20


class Raw(NamedTuple):
    """A key as the store has it, and the object's etag and size."""

    key: str
    etag: str
    size: int


class Secrets(NamedTuple):
    """The secrets that a request is signed with."""

    key_id: str
    secret: str
    token: str = ""


def secrets_of(place: Place, environment: Mapping[str, str] = os.environ) -> Secrets | None:
    """Secrets of the file, else of the environment; None: there are none to be read."""
    told = {name: value.get_secret_value() for name, value in place.credentials.items()}
    if "access_key_id" not in told:
        told = {name: environment.get(f"AWS_{name.upper()}", "") for name in ("access_key_id", "secret_access_key")}
        told["session_token"] = environment.get("AWS_SESSION_TOKEN", "")
    if not told.get("access_key_id") or not told.get("secret_access_key"):
        return None
    return Secrets(told["access_key_id"], told["secret_access_key"], told.get("session_token", ""))


async def raw_pages(
    place: Place, secrets: Secrets | None, after: str, now: Callable[[], float]
) -> AsyncIterator[list[Raw]]:
    """Yields the objects below the place, those behind the key `after`, page by page as the store lists them; keys
    without the place's own prefix. Without secrets it asks anonymously. `now` tells wall clock seconds. Raises
    NotConnected."""
    bucket, _, prefix = place.url.partition("://")[2].strip("/").partition("/")
    prefix = f"{prefix}/" if prefix else ""
    asked = {"encoding-type": "url", "list-type": "2", "prefix": prefix}
    if after:
        asked["start-after"] = prefix + after
    while True:
        try:
            text = await _page(place, bucket, asked, secrets, now())
            rows = [each._replace(key=each.key[len(prefix) :]) for each in _keys(text) if each.key.startswith(prefix)]
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotConnected(f"{place.url}: the listing failed: {error}") from None
        yield rows
        if _told(_MORE, text) != "true":
            return
        token = unescape(_told(_TOKEN, text))
        if token in ("", asked.get("continuation-token")):
            raise NotConnected(f"{place.url}: the store says that there are more keys, but not how to go on")
        asked.pop("start-after", None)
        asked["continuation-token"] = token


async def bucket_birth(place: Place, secrets: Secrets, now: float) -> str:
    """The date on which the bucket was made, by the list of all buckets; empty where the store does not give it. Raises
    NotConnected."""
    bucket = place.url.partition("://")[2].strip("/").partition("/")[0]
    try:
        text = await _page(place, "", {}, secrets, now)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotConnected(f"{place.url}: the list of buckets failed: {error}") from None
    found = {unescape(_told(_NAME, each)): _told(_MADE, each) for each in _BUCKET.findall(text)}
    return found.get(bucket, "")


async def _page(place: Place, bucket: str, asked: Mapping[str, str], secrets: Secrets | None, now: float) -> str:
    region = place.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    address = urlsplit(place.endpoint or f"https://s3.{region}.amazonaws.com")
    path = f"{address.path.rstrip('/')}/{quote(bucket)}"
    query = "&".join(f"{name}={quote(asked[name], safe='')}" for name in sorted(asked))
    headers = {"host": address.netloc, "x-amz-content-sha256": _EMPTY}
    if secrets is not None:
        headers |= signed("GET", path, query, headers, secrets, region, now)
    status, body = await asyncio.to_thread(_ask, address.scheme, address.netloc, f"{path}?{query}", headers, place)
    if status != 200 and not bucket:
        return ""  # it is not for us to know
    if status != 200:
        raise NotConnected(f"{place.url}: the listing was answered with {status}: {body[:300]!r}")
    return body.decode()


def signed(
    method: str, path: str, query: str, headers: Mapping[str, str], secrets: Secrets, region: str, now: float
) -> dict[str, str]:
    """Headers that a request to S3 needs besides `headers`; `query` is sorted and encoded."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    more = {"x-amz-date": moment} | ({"x-amz-security-token": secrets.token} if secrets.token else {})
    every = {**headers, **more}
    names = ";".join(sorted(every))
    told = "".join(f"{name}:{every[name].strip()}\n" for name in sorted(every))
    request = "\n".join([method, path, query, told, names, every["x-amz-content-sha256"]])
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secrets.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return {
        **more,
        "authorization": f"AWS4-HMAC-SHA256 Credential={secrets.key_id}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}",
    }


def _ask(scheme: str, where: str, target: str, headers: Mapping[str, str], place: Place) -> tuple[int, bytes]:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    proxy = urlsplit(proxy_for(f"{scheme}://{where}")).netloc.rpartition("@")[2]
    connection = kind(proxy or where, timeout=place.timeout)
    if proxy and scheme == "https":
        connection.set_tunnel(where)
    try:
        connection.request(
            "GET", f"{scheme}://{where}{target}" if proxy and scheme == "http" else target, headers=dict(headers)
        )
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    finally:
        connection.close()


def _keys(text: str) -> list[Raw]:
    """Reads objects from between the tags: keys are encoded as in a URL, so none can look like a tag."""
    return [
        Raw(unquote_plus(_told(_KEY, each)), unescape(_told(_ETAG, each)), int(_told(_SIZE, each) or 0))
        for each in _OBJECT.findall(text)
    ]


def _told(what: re.Pattern[str], text: str) -> str:
    found = what.search(text)
    return found[1] if found else ""
