"""A Redis server as stores and sources use it: its address, its connections, and its errors in our words.

Nothing is tried again here: an error says that it is unknown whether a write was kept, and the caller repeats it. Calls
that wait on the server have connections of their own, so that they hold up no others. Answers are returned as Redis
sends them (bytes, lists).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from redis import exceptions as errors
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from ...foundation.clock import SYSTEM_CLOCK
from ...foundation.config import Seconds
from ...model.errors import NotConnected, StoreFull, TailraceError
from ...model.reopening import Trouble
from .connections import Commands, RedisConnections

#: Connections for commands; callers beyond it wait for one.
CONNECTIONS = 16
#: Connections that may wait for something to happen at once.
WAITING = 1024
SCHEMES = ("redis", "rediss", "unix")
#: Text of uvloop's RuntimeError for a write to a connection that was lost a moment ago; redis-py lets it pass.
_LOST = "the handler is closed"
#: Errors of a call that the server did not answer as it should.
_FAILURES = (errors.RedisError, OSError, RuntimeError)


class RedisOptions(BaseModel):
    """The connection to a server.

    url              redis://, rediss:// (TLS) or unix://, as in redis://user:password@host:6379/0
    username, password   win over those in the URL
    tls_ca, tls_cert, tls_key   files for TLS: the authorities to trust (default: the system's), and our own certificate
    connect_timeout, timeout   seconds for a connection, and for an answer
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    username: str | None = None
    password: SecretStr | None = None
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
            good = parts.scheme in SCHEMES and bool(parts.hostname if parts.scheme != "unix" else parts.path)
            good = good and (parts.port or 1) > 0
        except ValueError:
            good = False
        if not good:  # the value may hold a password, so it is not repeated
            raise ValueError("expected a URL such as redis://HOST:6379/0, rediss://HOST:6380/0 or unix:///PATH")
        return url

    @model_validator(mode="after")
    def _tls_has_a_use(self) -> Self:
        if (self.tls_ca or self.tls_cert or self.tls_key) and not self.url.get_secret_value().startswith("rediss://"):
            raise ValueError("tls_ca, tls_cert and tls_key need TLS: write the url as rediss://…")
        return self

    @property
    def server(self) -> str:
        """The server, as messages name it: without user and password."""
        parts = urlsplit(self.url.get_secret_value())
        if parts.scheme == "unix":
            return f"Redis at {parts.path}"
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
        return Commands(
            connection_pool=RedisConnections.from_url(
                self.url.get_secret_value(),
                timeout=0.0 if waits else self.timeout,
                max_connections=WAITING if waits else CONNECTIONS,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=self.connect_timeout,
                socket_timeout=None,
                **self.given(),
            )
        )


class Script:
    """A Lua script, sent whole only where the server does not have it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisServer:
    """One server, for any number of calls at once. Every call raises Unavailable (NotConnected, StoreFull) with advice.
    It dials at the first call, and again after `close`.

    `clients` makes the two clients, for commands and for calls that wait on the server; tests give their own.
    `declared`: keys that every script declares beside its own. On a cluster one of them exists always and one never, so
    that while their slot moves each node answers TRYAGAIN before a script's first write: a script that declared
    existing keys alone would stop half-way, at the first that is on the other node, and one that declared none would
    run on the new node, on nothing.
    """

    def __init__(
        self,
        options: RedisOptions,
        waits: float,
        clients: Callable[[], tuple[Any, Any]] | None = None,
        declared: Sequence[str] = (),
    ) -> None:
        self.name = options.server
        self.moving_since = 0.0  # wall clock seconds: scripts are refused since then, as their slot moves; 0: they run
        self.trusted_run = ""  # the run of the server (run_id) whose promises were found good
        self._distrusted: tuple[float, str] | None = None  # since when it is not (wall clock), and why
        self._declared = tuple(declared)
        self.waits = waits
        self._timeout = options.connect_timeout + options.timeout
        self._make = clients or (lambda: (options.client(), options.client(waits=waits)))
        self._clients: tuple[Any, Any] | None = None

    def _client(self, which: int) -> Any:
        if self._clients is None:
            self._clients = self._make()
            for client in self._clients:
                client.response_callbacks.clear()  # answers as they come
        return self._clients[which]

    async def call(self, *command: Any, about: str = "", none_if: str = "") -> Any:
        """Sends one command. `about` names its purpose in messages; an error with the words `none_if` returns None."""
        return await self._translated(self._client(0).execute_command(*command), about, none_if)

    async def wait(self, *command: Any, about: str = "") -> Any:
        """Sends one command that may be held by the server, for at most `waits` seconds."""
        return await self._translated(self._client(1).execute_command(*command), about, held=self.waits)

    async def calls(self, commands: Sequence[Sequence[Any]], about: str = "") -> list[Any]:
        """Sends several commands in one trip; they are no transaction."""
        if not commands:
            return []
        pipeline = self._client(0).pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return cast("list[Any]", await self._translated(pipeline.execute(), about))

    async def run(self, script: Script, keys: Sequence[str], *arguments: Any, about: str = "") -> Any:
        """Runs a script. `keys` must be of one hash tag."""
        client = self._client(0)
        if self._declared:
            keys = (*keys, *self._declared)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await client.execute_command("EVALSHA", script.sha, len(keys), *keys, *arguments)
            if self.moving_since:
                self.moving_since = 0.0
            return answer
        except errors.NoScriptError:
            return await self.call("EVAL", script.text, len(keys), *keys, *arguments, about=about)
        except _FAILURES as error:
            raise await self._failed(error, about) from None

    async def _translated(self, answer: Awaitable[Any], about: str, none_if: str = "", held: float = 0.0) -> Any:
        try:
            async with asyncio.timeout(self._timeout + held):
                return await answer
        except _FAILURES as error:
            if none_if and none_if in str(error):
                return None
            raise await self._failed(error, about) from None

    async def _failed(self, error: Exception, about: str) -> TailraceError:
        """The error to raise. A replica may have been the master until now: it closes no connection when it is demoted,
        so connections are dialled anew, which leads to the server that the name means now."""
        if isinstance(error, errors.ReadOnlyError):
            await self.dial_anew()
        elif isinstance(error, errors.TryAgainError):
            self.moving_since = self.moving_since or SYSTEM_CLOCK.wall()
        return explained(error, self.name, about)

    @contextlib.contextmanager
    def judged(self, run: str) -> Iterator[None]:
        """Notes whether a run of the server is trusted with a store, by whether the body raises."""
        try:
            yield
        except TailraceError as error:
            self.trusted_run = ""
            self._distrusted = self._distrusted or (SYSTEM_CLOCK.wall(), str(error))
            raise
        self.trusted_run, self._distrusted = run, None

    def troubles(self, store: str) -> list[Trouble]:
        """Troubles that the store on this server has, for operators."""
        if self._distrusted is not None:
            return [Trouble(store, *self._distrusted)]
        if not self.moving_since:
            return []
        what = (
            f"{self.name}: the slot of the {store} is moving to another node of the cluster, and it pauses until then"
        )
        return [Trouble(store, self.moving_since, what, todo=_FINISH_THE_MOVE)]

    async def dial_anew(self) -> None:
        """Has the next calls dial new connections."""
        for client in self._clients or ():
            await client.connection_pool.dial_anew()

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        clients, self._clients = self._clients, None
        for client in clients or ():
            await client.aclose()
            await client.connection_pool.disconnect()


class _Case(NamedTuple):
    """A case of an error: its types, or the first word of the server's text; the error to raise instead, and its
    text."""

    types: tuple[type[Exception], ...]
    codes: tuple[str, ...]
    instead: type[TailraceError]
    words: str  # with {server}, {what} (the server and the purpose of the call) and {said}


#: Advice about a slot that is on two nodes.
_FINISH_THE_MOVE = (
    "it goes on by itself once all keys are there; a move that was left half-way is found by "
    "`redis-cli --cluster check HOST:PORT`, and ended by `redis-cli --cluster fix HOST:PORT`"
)
#: The first that fits counts: the library's types are each other's children.
_CASES = (
    _Case(
        (errors.AuthenticationError, errors.AuthorizationError),
        ("NOAUTH", "WRONGPASS"),
        NotConnected,
        "{server} refuses the user or the password: give the url, username and password that the server knows",
    ),
    _Case(
        (errors.NoPermissionError,),
        ("NOPERM",),
        NotConnected,
        "{what}: this user may not do that ({said}): allow it with ACL SETUSER",
    ),
    _Case(
        (),
        ("WRONGTYPE",),
        NotConnected,
        "{what}: the key holds another type than a stream: give the key of a stream",
    ),
    _Case(
        (errors.OutOfMemoryError,),
        ("OOM",),
        StoreFull,
        "{what}: its maxmemory is reached, so it refuses writes: raise maxmemory, or free some memory",
    ),
    _Case((), ("MISCONF",), StoreFull, "{what}: it cannot write to its disk and refuses writes until it can ({said})"),
    _Case(
        (errors.TryAgainError,),
        ("TRYAGAIN",),
        NotConnected,
        "{what}: its slot of the Redis Cluster is moving to another node, and nothing runs until all of it is there: "
        + _FINISH_THE_MOVE,
    ),
    _Case(
        (errors.AskError, errors.ClusterError, errors.ClusterCrossSlotError),
        ("MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"),
        NotConnected,
        "{what}: it is a node of a Redis Cluster, and the key is on another node ({said}): set `cluster: true` for a "
        "queue or a state; give all else the address of a server, or of a proxy, that has all the keys",
    ),
    _Case((errors.BusyLoadingError,), ("LOADING",), NotConnected, "{server} is still loading its data"),
    _Case(
        (errors.ReadOnlyError,),
        ("READONLY",),
        NotConnected,
        "{server} is a replica, which takes no writes: give the address of its master, or let this one lead to it",
    ),
    _Case(
        (errors.TimeoutError, TimeoutError),
        (),
        NotConnected,
        "{what} does not answer; it is unknown whether a write was kept, so it is to be repeated",
    ),
    _Case((errors.ConnectionError, OSError), (), NotConnected, "{server} cannot be reached: {said}"),
    _Case((Exception,), (), NotConnected, "{what}: {said}"),
)


def explained(error: Exception, server: str, about: str = "") -> TailraceError:
    """The error to raise, with its cause and advice: NotConnected for all that may pass by waiting or with an
    operator's help. Raises a RuntimeError that is about something else than a lost connection."""
    if isinstance(error, RuntimeError):
        if _LOST not in str(error):
            raise error
        error = ConnectionResetError("the connection was lost")
    said = str(error).strip() or type(error).__name__
    code = said.partition(" ")[0]
    case = next(case for case in _CASES if isinstance(error, case.types) or code in case.codes)
    what = f"{server}, {about}" if about else server
    return case.instead(case.words.format(server=server, what=what, said=said))


__all__ = ["RedisOptions", "RedisServer", "Script", "explained"]
