"""Callers of a listener beyond its machine: authentication by certificate or token, and the right of its role to call.

gRPC verifies certificates when a connection is made; each call is checked against the certificate and the state of the
fleet by now (`foundation/peer_check.py`). Calls that last end within a second of the end of the certificate, token or
right that admitted them.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import grpc

from ..foundation.certificates import Certificates
from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.peer_check import GRANTS, ShownCertificate, admit
from ..foundation.x509_checks import parsed, peer_of
from ..model.caller import Caller
from ..model.errors import ConfigError, InvalidRequest, Unavailable
from ..model.grants import GrantedRights
from ..model.rights import Need, Right, missing, not_held, sentence
from ..model.token import Token
from ..model.token_calls import check_call
from .bounds import USUAL
from .malformed_messages import NoMessage
from .shared_secret import AUTHORIZATION, BEARER
from .statuses import CallStatus, refused, status_of
from .unread_calls import NOT_READ, NotRead, asked_first

#: Seconds between looks at calls that last.
LOOK = 0.25
#: Certificates of peers whose parsed content is remembered.
REMEMBERED = 1024
#: Methods that anybody of the fleet may call, whatever its role.
FOR_ALL = ("/grpc.health.v1.Health/", "/grpc.reflection.")
_PACKAGE = "/tailrace.v1."
#: The classes of requests that do not say which call it is: one that could not be read, and one that was not yet.
_NO_CALL = (NoMessage, NotRead)

_LOG = logging.getLogger("tailrace.wire")


class Admitted(NamedTuple):
    """A caller that may make a call. `ended` (of the wall clock): why it may not any longer; empty: it still may."""

    caller: Caller
    ended: Callable[[float], str]
    granted: GrantedRights | None = None


class Tokens(Protocol):
    """The tokens that a server knows."""

    def shown(self, secret: str, now: float) -> Token:
        """The token of a secret. Raises InvalidRequest for an unknown one, Unavailable while no tokens are known."""

    def ended(self, token: Token, now: float) -> str:
        """The reason not to accept a token any longer; empty: it is accepted."""


class TokenDoor:
    """A second address of a server, for callers with a token and no certificate. `address`: the actual one, once it is
    served."""

    def __init__(self, listen: str, tokens: Tokens) -> None:
        self.listen = listen
        self.tokens = tokens
        self.address = ""


#: The caller of the call that is being answered; None: a user of this machine, who showed its secret.
CALLER: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("tailrace-caller", default=None)
#: The rights of that caller; None: it has none of its own, and may do whatever its role may.
RIGHTS: contextvars.ContextVar[GrantedRights | None] = contextvars.ContextVar("tailrace-rights", default=None)


def rights_of_caller() -> tuple[Right, ...] | None:
    """The rights of the caller of the call that is being answered; None: it has none of its own."""
    granted = RIGHTS.get()
    return None if granted is None else granted.rights


def require(needs: Iterable[Need]) -> None:
    """Raises InvalidRequest where the caller of the call that is being answered lacks a right."""
    granted = RIGHTS.get()
    if granted is not None and (need := missing(granted.rights, needs)) is not None:
        raise InvalidRequest(sentence(granted.name, granted.rights, need))


def require_held(wanted: Iterable[Right]) -> None:
    """Raises InvalidRequest for a right that the caller of the call that is being answered wants to give and has not
    itself."""
    granted = RIGHTS.get()
    if granted is not None and (right := not_held(granted.rights, wanted)) is not None:
        has = ", ".join(map(str, granted.rights))
        raise InvalidRequest(
            f"{granted.name} may not give the right {right}: nobody gives a right that it has not itself, and it has "
            f"{has}"
        )


class FleetCheck:
    """The check of the callers of a server that speaks TLS: by the certificates of its own fleet, or by `tokens`.
    `hold` is told of each call that is refused. `within`: seconds from the begin of a call to its message."""

    def __init__(
        self,
        certificates: Certificates,
        tokens: Tokens | None = None,
        hold: Callable[[Any], None] = lambda context: None,
        clock: Clock = SYSTEM_CLOCK,
        within: float = USUAL.frame,
    ) -> None:
        self._certificates = certificates
        self._hold = hold
        self._tokens = tokens
        self._grants = GRANTS.get()
        self._clock = clock
        self._within = within
        self._open: dict[asyncio.Task[Any], tuple[Admitted, str]] = {}
        self._ended: dict[asyncio.Task[Any], str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._refused = 0

    def admit(self, context: Any, path: str, request: Any) -> Admitted:
        """The caller of a call. Raises InvalidRequest for one that may not be made. A call that cannot be read passes
        this check, and is refused behind it."""
        if (shown := _shown(context.invocation_metadata())) is not None:
            return self._with_token(shown, path, request)
        found = self._certificate(context)
        call = "" if path.startswith(FOR_ALL) or request.__class__ in _NO_CALL else call_name(path, request)
        granted = admit(found, self._certificates.now(), self._grants, call, self._clock.wall())
        return Admitted(found.peer.caller, functools.partial(self._ended_for, found), granted)

    def _ended_for(self, found: ShownCertificate, now: float) -> str:
        """The reason not to accept a certificate any longer; empty: it is accepted."""
        return found.ended(self._certificates.now(), now)

    def _certificate(self, context: Any) -> ShownCertificate:
        shown = context.auth_context()
        chains: Iterable[bytes] = shown.get("x509_pem_cert_chain", ())
        for each in shown.get("x509_pem_cert", ()):
            return _read(each, b"".join(chains))
        raise InvalidRequest(
            "the call shows neither a certificate nor a token: TAILRACE_TOKEN_FILE names a file with one, TAILRACE_TLS "
            "a folder of certificates"
        )

    def _with_token(self, secret: str, path: str, request: Any) -> Admitted:
        if self._tokens is None:
            raise InvalidRequest("no token is taken here, only certificates: ask the gateway")
        token = self._tokens.shown(secret, self._clock.wall())
        granted = GrantedRights(f"the token {token.name}", token.rights)
        if not path.startswith(FOR_ALL) and request.__class__ not in _NO_CALL:
            check_call(granted, call_name(path, request))
        mine = self._certificates.now().caller
        caller = Caller("" if mine is None else mine.fleet, "client", token.name)
        return Admitted(caller, functools.partial(self._tokens.ended, token), granted)

    async def _admitted(self, context: Any, path: str, request: Any) -> Admitted:
        """The caller of a call. One that may not be made is ended, and counts for its peer until that has read why."""
        try:
            return self.admit(context, path, request)
        except Unavailable as error:
            self._hold(context)
            await context.abort(*status_of(error))
            raise
        except (InvalidRequest, ConfigError) as error:
            self._hold(context)
            await context.abort(*self._refusal(str(error), path))
            raise

    def _refusal(self, why: str, path: str) -> CallStatus:
        """The status of a call that may not be made. The log has the 1st, 2nd, 4th, 8th … of them."""
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:
            _LOG.warning("a call of %s was refused: %s (%d so far)", path, why, self._refused)
        return refused(why)

    # ---- calls that last

    def lasts(self, admitted: Admitted, path: str) -> asyncio.Task[Any]:
        """Notes that the running task answers a call that may last: it is cancelled when the caller's right ends."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = (admitted, path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)
        return task

    def over(self, task: asyncio.Task[Any]) -> str:
        """Notes that such a call is over, and returns why it was ended from here; empty: it was not."""
        self._open.pop(task, None)
        return self._ended.pop(task, "")

    def _look(self) -> None:
        now = self._clock.wall()
        for task, (admitted, path) in list(self._open.items()):
            if why := admitted.ended(now):
                _LOG.warning("a call of %s was ended: %s", path, why)
                del self._open[task]
                self._ended[task] = why
                task.cancel()
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._look) if self._open else None

    def stop(self) -> None:
        """Stops the timer that looks for calls to end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def guarded(self, handler: Any, path: str) -> Any:
        """The handler of a method behind the check of its callers. Nothing is read of a call before its caller is
        known; the message then says whether it may make just this call."""
        if handler.request_streaming:
            inner = handler.stream_stream or handler.stream_unary
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.response_streaming
                else grpc.stream_unary_rpc_method_handler
            )
            return make(
                self._answering(inner, path, one=False), handler.request_deserializer, handler.response_serializer
            )
        make = (
            grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
        )
        inner = self._answering(handler.unary_stream or handler.unary_unary, path, one=True)
        return asked_first(
            make(inner, handler.request_deserializer, handler.response_serializer),
            lambda context: self._admitted(context, path, NOT_READ),
            self._within,
        )

    def _answering(self, inner: Callable[[Any, Any], Any], path: str, *, one: bool) -> Callable[[Any, Any], Any]:
        async def method(request: Any, context: Any) -> Any:
            admitted = await self._admitted(context, path, request if one else None)
            CALLER.set(admitted.caller)
            RIGHTS.set(admitted.granted)
            task = self.lasts(admitted, path)
            try:
                return await inner(request, context)
            except asyncio.CancelledError:
                why = self.over(task)
                if not why:
                    raise
                task.uncancel()
                await context.abort(*refused(why))
                raise
            finally:
                self.over(task)

        return method


def call_name(path: str, request: Any) -> str:
    """The name of a call in the rule of roles: its service and method, and for a call by name (`wire/stores.py`) the
    store and the method that it names."""
    name = path.removeprefix(_PACKAGE)
    return f"{name} {request.store}.{request.method}" if name in ("Operators/Call", "Stores/Call") else name


def _shown(metadata: Any) -> str | None:
    """The token that a call shows, if it does."""
    for key, value in metadata or ():
        if key == AUTHORIZATION:
            text = value if isinstance(value, str) else value.decode(errors="replace")
            return text.removeprefix(BEARER).strip()
    return None


@functools.lru_cache(maxsize=REMEMBERED)
def _read(pem: bytes, chain: bytes) -> ShownCertificate:
    """The certificate that gRPC has verified, and its chain. Raises InvalidRequest for a certificate that is not one of
    this platform's."""
    found = parsed(pem, "the caller's certificate")
    return ShownCertificate(peer_of(found[0]), [found[0], *(parsed(chain, "the caller's chain") if chain else ())])
