"""The connection to a Redis server as configurations give it: its URL, who we are, and the client for it."""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ...foundation.config import Seconds
from .connections import Commands, RedisConnections
from .sentinel import SentinelConnections, sentinel_address

#: Connections for commands; callers beyond it wait for one.
CONNECTIONS = 16
#: Connections that may wait for something to happen at once.
WAITING = 1024
SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
#: Parameters that a URL may have; the others are ours to set.
PARAMETERS = frozenset(
    ("db", "username", "password", "client_name", "socket_keepalive", "ssl_cert_reqs", "ssl_check_hostname")
) | {"ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_ciphers"}
#: Advice for some of the others.
INSTEAD = {
    "socket_timeout": "write the option `timeout`",
    "socket_connect_timeout": "write the option `connect_timeout`",
    "sentinel_master": "write redis+sentinel://HOST:26379,HOST:26379/MASTER",
    "ssl": "write rediss://",
}


class RedisOptions(BaseModel):
    """The connection to a server.

    url              redis://, rediss:// (TLS) or unix://, as in redis://user:password@host:6379/0; or Sentinels and the
                     name of the master that they watch, redis+sentinel://host:26379,host:26379/master/0
    username, password   win over those in the URL
    sentinel_username, sentinel_password   who we are to the Sentinels, where they ask
    tls_ca, tls_cert, tls_key   files for TLS: the authorities to trust (default: the system's), and our own certificate
    connect_timeout, timeout   seconds for a connection, and for an answer
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    username: str | None = None
    password: SecretStr | None = None
    sentinel_username: str | None = None
    sentinel_password: SecretStr | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    connect_timeout: Seconds = Field(5.0, gt=0, le=300)
    timeout: Seconds = Field(10.0, gt=0, le=300)

    @field_validator("url")
    @classmethod
    def _is_a_url(cls, url: SecretStr) -> SecretStr:
        parts = urlsplit(url.get_secret_value())
        try:
            good = parts.scheme in SCHEMES and bool(parts.netloc if parts.scheme != "unix" else parts.path)
            if good and parts.scheme.endswith("+sentinel"):
                sentinel_address(parts.netloc, parts.path)
            elif good:
                good = bool(parts.hostname or parts.scheme == "unix") and (parts.port or 1) > 0
        except ValueError:
            good = False
        if not good:  # the value may hold a password, so it is not repeated
            raise ValueError(
                "expected a URL such as redis://HOST:6379/0, rediss://HOST:6380/0, unix:///PATH or "
                "redis+sentinel://HOST:26379,HOST:26379/MASTER"
            )
        for name in parse_qs(parts.query, keep_blank_values=True):
            if name not in PARAMETERS:
                todo = INSTEAD.get(name, "tailrace sets it itself, or does not know it; leave it out")
                raise ValueError(f"the parameter {name!r:.100} in the URL: {todo}")
        return url

    @model_validator(mode="after")
    def _tls_has_a_use(self) -> Self:
        if (self.tls_ca or self.tls_cert or self.tls_key) and not self.url.get_secret_value().startswith("rediss"):
            raise ValueError("tls_ca, tls_cert and tls_key need TLS: write the url as rediss://…")
        return self

    @property
    def server(self) -> str:
        """The server, as messages name it: without user and password."""
        parts = urlsplit(self.url.get_secret_value())
        if parts.scheme == "unix":
            return f"Redis at {parts.path}"
        if parts.scheme.endswith("+sentinel"):
            return f"Redis {sentinel_address(parts.netloc, parts.path).text}"
        return f"Redis at {parts.hostname}:{parts.port or 6379}"

    def given(self) -> dict[str, Any]:
        """The arguments of a client besides the URL."""
        found: dict[str, Any] = {"username": self.username, "ssl_ca_certs": self.tls_ca}
        found |= {"ssl_certfile": self.tls_cert, "ssl_keyfile": self.tls_key}
        if self.password is not None:
            found["password"] = self.password.get_secret_value()
        return {name: value for name, value in found.items() if value is not None}

    def client(self, *, waits: float = 0.0) -> Any:
        """A client whose calls may be held for `waits` seconds; it dials at its first call. RedisServer watches the
        time of an answer: under a socket_timeout redis-py sends in `asyncio.wait_for`, which in Python 3.11 forgets a
        cancellation that comes as the write ends, so that the task that cancelled waits for ever."""
        given: dict[str, Any] = self.given() | {
            "timeout": 0.0 if waits else self.timeout,
            "max_connections": WAITING if waits else CONNECTIONS,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": self.connect_timeout,
            "socket_timeout": None,
        }
        url = self.url.get_secret_value()
        parts = urlsplit(url)
        if not parts.scheme.endswith("+sentinel"):
            return Commands(connection_pool=RedisConnections.from_url(url, **given))
        tls = parts.scheme.startswith("rediss")
        # The library reads user, password and parameters; the hosts are those of the Sentinels.
        read = parse_url(f"{'rediss' if tls else 'redis'}://{parts.netloc.rpartition('@')[0]}@host?{parts.query}")
        secure = {name: value for name, value in {**read, **given}.items() if name.startswith("ssl_")}
        asking = {"username": self.sentinel_username, "password": _secret(self.sentinel_password), **secure}
        mine: dict[str, Any] = {
            name: value for name, value in read.items() if name not in ("host", "connection_class", "db")
        }
        address = sentinel_address(parts.netloc, parts.path)
        return Commands(connection_pool=SentinelConnections(address, tls=tls, asking=asking, **mine | given))


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


class RedisStoreOptions(RedisOptions):
    """The connection to a server under a store of ours, and its keys.

    prefix    beginning of the name of every key; another prefix is another store
    replicas  replicas that must have a write before it is acknowledged
    """

    prefix: str = Field("tailrace", min_length=1, max_length=100, pattern=r"^[^{}\s]+$")
    replicas: int = Field(0, ge=0, le=10)


def refuse_on_a_cluster(options: RedisStoreOptions, *, cluster: bool) -> None:
    """Raises ValueError for options that a Redis Cluster does not have."""
    if cluster and options.replicas:
        raise ValueError("replicas: not with `cluster: true`; expected 0")
    if cluster and "+sentinel://" in options.url.get_secret_value():
        raise ValueError("url: a Redis Cluster has no Sentinels; give the address of one of its nodes")
