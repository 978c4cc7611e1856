"""Places of objects, as a file names them: a tailer's, or that of a worker whose functions open objects by
reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from .config import Seconds
from .proxies import HERE, stays_here

T = TypeVar("T")
#: The client tries a request so often, and for so many seconds, before it says that the store is away.
RETRIES = 3
RETRY_SECONDS = 15.0

#: By scheme: the credentials that may be given, and the library's name for an endpoint.
SCHEMES: dict[str, tuple[tuple[str, ...], str]] = {
    "s3": (("access_key_id", "secret_access_key", "session_token"), "endpoint"),
    "gs": (("service_account", "service_account_key", "application_credentials"), "base_url"),
    "az": (("account_name", "account_key", "sas_key", "client_id", "client_secret", "tenant_id"), "endpoint"),
    "file": ((), ""),
    "memory": ((), ""),
}


class Place(BaseModel):
    """A place of objects, and how to reach it.

    url          s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, file:///folder, memory:///
    endpoint     of a store that speaks the protocol elsewhere: http://127.0.0.1:9000
    region       of an S3 bucket
    credentials  by name; write ${NAME} for a variable of the environment. Default: those that the store's tools find
    anonymous    ask without credentials, but for the account_name of an Azure
    timeout      seconds for one request, its body included
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str = Field(min_length=1)
    endpoint: str = ""
    region: str = ""
    credentials: dict[str, SecretStr] = Field(default_factory=dict)
    anonymous: bool = False
    timeout: Seconds = Field(30.0, gt=0, le=3600)

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, url: str) -> str:
        parts = urlsplit(url)
        scheme = parts.scheme
        odd = {"..", "."} & set(unquote(parts.path).split("/")) or "//" in parts.path.rstrip("/")
        looks = {
            f'expected s3://, gs://, az://, file:// or memory://, got "{url}"': scheme not in SCHEMES,
            "expected a bucket and a prefix, without credentials, ? or #; give those under credentials": bool(
                parts.username or parts.password or parts.query or parts.fragment
            ),
            f'expected an absolute path, such as file:///var/spool/events, got "{url}"': (
                scheme == "file" and bool(parts.netloc or not parts.path.startswith("/"))
            ),
            f'expected {scheme}://BUCKET/PREFIX, got "{url}"': scheme in ("s3", "gs", "az") and not parts.netloc,
            f'expected a plain path, got "{url}"': bool(odd),
        }
        return _unless(url, looks)

    @field_validator("endpoint", "region", "credentials", "anonymous")
    @classmethod
    def _fits_its_place(cls, value: Any, about: ValidationInfo) -> Any:
        scheme = urlsplit(about.data.get("url", "")).scheme
        if scheme not in SCHEMES or not value:
            return value
        names, endpoint = SCHEMES[scheme]
        match about.field_name:
            case "endpoint":
                looks = {
                    f"a {scheme}:// place has none; leave it out": not endpoint,
                    f'expected http://… or https://…, got "{value}"': urlsplit(value).scheme not in ("http", "https"),
                }
            case "region":
                looks = {f"only an s3:// place has one, not a {scheme}:// one; leave it out": scheme != "s3"}
            case "credentials":
                unknown = ", ".join(sorted(value.keys() - set(names)))
                looks = {f"unknown {unknown}; a {scheme}:// place takes {', '.join(names) or 'none'}": bool(unknown)}
            case _:
                secret = about.data.get("credentials", {}).keys() - {"account_name"}  # a name tells where, not who
                looks = {"leave it out, or the credentials": bool(secret)}
        return _unless(value, looks)

    @property
    def scheme(self) -> str:
        """Scheme of the url, which names the kind of store."""
        return urlsplit(self.url).scheme

    def reveal(self) -> str:
        """The place as JSON with its secrets, for processes of our own."""
        secrets = {name: secret.get_secret_value() for name, secret in self.credentials.items()}
        return json.dumps({**self.model_dump(exclude={"credentials"}), "credentials": secrets})


def place_for(url: str, places: Sequence[Place]) -> Place | None:
    """The place that holds `url`, which is its url or lies below it; of several the nearest."""
    try:
        Place(url=url)
    except ValidationError:
        return None  # such as one that leads out again by ".."
    holding = [each for each in places if url == each.url or url.startswith(each.url.rstrip("/") + "/")]
    nearest = max(holding, key=lambda each: len(each.url), default=None)
    return None if nearest is None else nearest.model_copy(update={"url": url})


def client_settings(place: Place) -> dict[str, Any]:
    """Settings of the client library for a place."""
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
    if stays_here(place.endpoint):  # a proxy that excludes the only host there is: the client has no "none"
        found["client_options"] |= {"proxy_url": place.endpoint, "proxy_excludes": HERE}
    found["retry_config"] = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
    return found


def _unless(value: T, looks: Mapping[str, bool]) -> T:
    """Returns the value, or raises the first reason that holds against it."""
    for why, wrong in looks.items():
        if wrong:
            raise PydanticCustomError("place", "{reason}", {"reason": why})
    return value
