"""Metrics for a scraper: `GET /metrics` over HTTP, worked out at each scrape. Beyond loopback it is HTTPS, and takes
certificates of the fleet alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from aiohttp import web

from ..model.address import SECURED, listening_address, wants_tls
from ..model.errors import ConfigError, TailraceError
from ..model.exposition import openmetrics_text, prometheus_text
from ..model.grants import Grants
from ..model.metrics import Sample
from .certificates import Certificates, certificates
from .clock import SYSTEM_CLOCK, Clock
from .peer_check import GRANTS, ShownCertificate, admit
from .secured_sockets import ServingContext
from .x509_checks import peer_of_der

#: Prometheus' text format, by its name in HTTP.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: OpenMetrics, likewise: a scraper that asks for it gets exemplars too.
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
#: A scrape, as the rule of roles names calls.
SCRAPE = "Metrics/Scrape"

#: Connections at once, since anybody may ask; and seconds that each may last: a scraper connects anew.
CONNECTIONS = 64
LASTING = 60.0
#: Seconds within which TLS is to be agreed.
GREETING = 5.0


class Scrapes:
    """Makes the protocol of each connection. Invariant: `open` counts the connections that are not over."""

    def __init__(self, make: Callable[[], asyncio.Protocol], connections: int = CONNECTIONS, lasting: float = LASTING):
        self.open = 0
        self._make = make
        self._connections = connections
        self._lasting = lasting

    def __call__(self) -> asyncio.Protocol:
        return _Scrape(self, self._make())

    def begin(self, transport: asyncio.BaseTransport) -> asyncio.TimerHandle:
        """Counts one more connection; returns the timer that ends it. Beyond the bound it is ended at once."""
        self.open += 1
        end = cast(asyncio.Transport, transport).abort
        return asyncio.get_running_loop().call_later(self._lasting if self.open <= self._connections else 0.0, end)


class _Scrape(asyncio.Protocol):
    """Passes everything on to the protocol inside, until its time is over."""

    def __init__(self, scrapes: Scrapes, inner: asyncio.Protocol) -> None:
        self._scrapes = scrapes
        self._inner = inner
        self._end: asyncio.TimerHandle | None = None
        self.data_received = inner.data_received  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._end = self._scrapes.begin(transport)
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._scrapes.open -= 1
        if self._end is not None:
            self._end.cancel()
        self._inner.connection_lost(error)


class MetricsServer:
    """The server of metrics: a Part. `listen` is HOST:PORT (port 0: any free one); `address` the actual one after
    start. When `ask` raises one of the platform's errors it answers 503 with the reason: a scrape fails rather than
    lies."""

    def __init__(
        self, listen: str, ask: Callable[[], Awaitable[Sequence[Sample]]], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._listen = listen
        self._clock = clock
        self._ask = ask
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._certificates: Certificates | None = None
        self._grants: Grants = {}
        self.address = listen

    async def start(self) -> None:
        """Begins to listen. Raises ConfigError where it cannot, and beyond loopback without certificates."""
        found = certificates() if wants_tls(self._listen) else None
        address = listening_address(self._listen, secured=found is not None)
        self._certificates, self._grants = found, GRANTS.get()
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        scrapes = Scrapes(cast(Callable[[], asyncio.Protocol], self._runner.server))
        try:
            self._server = await asyncio.get_running_loop().create_server(
                scrapes,
                address.bare_host,
                address.port,
                ssl=None if found is None else ServingContext(found),
                ssl_handshake_timeout=None if found is None else GREETING,
            )
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"cannot listen on {self._listen}: {error.strerror or error}; choose another port (`metrics_listen` in "
                "the part's file, or the option that named it)"
            ) from None
        name, number, *_ = self._server.sockets[0].getsockname()
        self.address = f"{SECURED if self._listen.startswith(SECURED) else ''}{name}:{number}"

    async def drain(self, timeout: float) -> None:
        """Does nothing: no scrape takes long."""

    async def stop(self) -> None:
        """Closes the listener. Harmless twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if self._certificates is not None and (why := self._refusal(self._certificates, request)):
            answer = web.Response(status=403, text=f"{why}\n")
            answer.force_close()
            return answer
        try:
            found = await self._ask()
        except TailraceError as error:
            return web.Response(status=503, text=f"{error}\n")
        wants_openmetrics = OPENMETRICS in request.headers.get("Accept", "")
        text = openmetrics_text(found) if wants_openmetrics else prometheus_text(found)
        kind = OPENMETRICS_TYPE if wants_openmetrics else CONTENT_TYPE
        return web.Response(body=text.encode(), headers={"Content-Type": kind})

    def _refusal(self, certificates: Certificates, request: web.Request) -> str:
        """The reason why a caller with a certificate may not scrape; empty: it may."""
        connection = None if request.transport is None else request.transport.get_extra_info("ssl_object")
        shown = None if connection is None else connection.getpeercert(binary_form=True)
        if connection is None or shown is None:
            return "the scrape shows no certificate"
        try:
            mine = certificates.now()
            if connection.context.authority != mine.authority:
                return (
                    "the authorities that are trusted here have changed since this connection was made: connect again"
                )
            admit(ShownCertificate(peer_of_der(shown)), mine, self._grants, SCRAPE, self._clock.wall())
        except TailraceError as error:
            return str(error)
        return ""
