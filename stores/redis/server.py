"""A Redis server as stores and sources use it: its connections, and its errors in our words.

Nothing is tried again here: an error says that it is unknown whether a write was kept, and the caller repeats it. Calls
that wait on the server have connections of their own, so that they hold up no others. Answers are returned as Redis
sends them (bytes, lists).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from redis import exceptions as errors

from ...foundation.clock import SYSTEM_CLOCK
from ...model.errors import ConfigError, NotConnected, StoreFull, TailraceError
from ...model.reopening import Trouble
from .options import RedisOptions, RedisStoreOptions

#: Text of uvloop's RuntimeError for a write to a connection that was lost a moment ago; redis-py lets it pass.
_LOST = "the handler is closed"
#: Words of a refusal for want of rights inside of a script, which bears no code.
_IN_A_SCRIPT = "The user executing the script"
#: Errors of a call that the server did not answer as it should.
_FAILURES = (errors.RedisError, OSError, RuntimeError)


class Script:
    """A Lua script, sent whole only where the server does not have it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._first, _, self._body = text.partition("\n")
        self.writes = "flags=no-writes" not in self._first
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    @functools.cached_property
    def counted(self) -> Script:
        """Copy that always writes something, as it counts in the last of its keys. WAIT is about the writes
        of its own connection, so a repeat that finds its work done, and writes nothing, would wait for nothing."""
        return Script(f"{self._first}\nredis.call('INCR', KEYS[#KEYS])\n{self._body}")


class RedisServer:
    """One server, for any number of calls at once. Every call raises Unavailable (NotConnected, StoreFull) with advice.
    It dials at the first call, and again after `close`.

    `clients` makes the two clients, for commands and for calls that wait on the server; tests give their own.
    `declared`: keys that every script declares beside its own. On a cluster one of them exists always and one never, so
    that while their slot moves each node answers TRYAGAIN before a script's first write: a script that declared
    existing keys alone would stop half-way, at the first that is on the other node, and one that declared none would
    run on the new node, on nothing. `counter`: the key that each script counts in where replicas are waited for.
    """

    def __init__(
        self,
        options: RedisOptions,
        waits: float,
        clients: Callable[[], tuple[Any, Any]] | None = None,
        declared: Sequence[str] = (),
        counter: str = "",
    ) -> None:
        self.name = options.server
        self.moving_since = 0.0  # wall clock seconds: scripts are refused since then, as their slot moves; 0: they run
        self.trusted_run = ""  # the run of the server (run_id) whose promises were found good
        self._distrusted: tuple[float, str] | None = None  # since when it is not (wall clock), and why
        self._declared = tuple(declared)
        self.waits = waits
        self._timeout = options.connect_timeout + options.timeout
        self.replicas = options.replicas if isinstance(options, RedisStoreOptions) else 0
        self._counter = counter
        self._replicated_within = int(options.timeout * 1000)
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
        return await self._translated(self._client(0).execute_command(*command), about, command, none_if)

    async def wait(self, *command: Any, about: str = "") -> Any:
        """Sends one command that may be held by the server, for at most `waits` seconds."""
        return await self._translated(self._client(1).execute_command(*command), about, command, held=self.waits)

    async def calls(self, commands: Sequence[Sequence[Any]], about: str = "") -> list[Any]:
        """Sends several commands in one trip; they are no transaction."""
        if not commands:
            return []
        pipeline = self._client(0).pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return cast("list[Any]", await self._translated(pipeline.execute(), about, commands[0]))

    async def run(self, script: Script, keys: Sequence[str], *arguments: Any, about: str = "") -> Any:
        """Runs a script. `keys` must be of one hash tag."""
        client = self._client(0)
        if self._declared:
            keys = (*keys, *self._declared)
        send = client.execute_command
        if self.replicas and script.writes:
            script, keys = script.counted, (*keys, self._counter)
            send = functools.partial(client.replicated, self.replicas, self._replicated_within)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await send("EVALSHA", script.sha, len(keys), *keys, *arguments)
            if self.moving_since:
                self.moving_since = 0.0
            return answer
        except errors.NoScriptError:
            return await self._translated(send("EVAL", script.text, len(keys), *keys, *arguments), about, keys)
        except _FAILURES as error:
            raise await self._failed(error, about, keys) from None

    async def _translated(
        self, answer: Awaitable[Any], about: str, words: Sequence[Any], none_if: str = "", held: float = 0.0
    ) -> Any:
        try:
            async with asyncio.timeout(self._timeout + held):
                return await answer
        except _FAILURES as error:
            if none_if and none_if in str(error):
                return None
            raise await self._failed(error, about, words) from None

    async def _failed(self, error: Exception, about: str, words: Sequence[Any]) -> TailraceError:
        """The error to raise about a call with these `words`, or a script with these keys. A replica may have been the
        master until now: it closes no connection when it is demoted, so connections are dialled anew, which leads to
        the server that the name means now."""
        if isinstance(error, errors.ReadOnlyError):
            await self.dial_anew()
        elif isinstance(error, errors.TryAgainError):
            self.moving_since = self.moving_since or SYSTEM_CLOCK.wall()
        elif "unknown command" in str(error) and await self._is_a_sentinel():
            return a_sentinel(self.name)
        return explained(error, self.name, about, " ".join(each for each in words[:3] if isinstance(each, str)))

    async def _is_a_sentinel(self) -> bool:
        with contextlib.suppress(TimeoutError, *_FAILURES):
            async with asyncio.timeout(self._timeout):
                return b"redis_mode:sentinel" in await self._client(0).execute_command("INFO", "server")
        return False

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
    words: str  # with {server}, {what} (the server and the purpose of the call), {said} and {words} (of the call)


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
        "{what}: this user may not do that ({said}; {words:.300}): allow it with ACL SETUSER, keys that are named and "
        "those that begin like them",
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
    _Case(
        (),
        ("NOREPLICAS",),
        NotConnected,
        "{what}: {said}. It is unknown whether a write was kept, so it is to be repeated: mend the replicas, or lower "
        "`replicas` in stores.yaml",
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


def a_sentinel(server: str) -> ConfigError:
    """The error for the address of a Sentinel where one of a server is expected."""
    return ConfigError(
        f"{server} is a Sentinel, no server with data: write the url as redis+sentinel://HOST:26379,HOST:26379/MASTER, "
        "with the name of the master that it watches"
    )


def explained(error: Exception, server: str, about: str = "", words: str = "") -> TailraceError:
    """The error to raise, with its cause and advice: NotConnected for all that may pass by waiting or with an
    operator's help. `words`: the first words of the call, or the keys. Raises a RuntimeError that is about something
    else than a lost connection."""
    if isinstance(error, RuntimeError):
        if _LOST not in str(error):
            raise error
        error = ConnectionResetError("the connection was lost")
    said = str(error).strip() or type(error).__name__
    code = "NOPERM" if _IN_A_SCRIPT in said else said.partition(" ")[0]
    case = next(case for case in _CASES if isinstance(error, case.types) or code in case.codes)
    what = f"{server}, {about}" if about else server
    return case.instead(case.words.format(server=server, what=what, said=said, words=words))


__all__ = ["RedisServer", "Script", "a_sentinel", "explained"]
