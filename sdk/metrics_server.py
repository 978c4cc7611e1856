"""Metrics for whoever scrapes them: `GET /metrics` over HTTP, worked out at each scrape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from .model.errors import ConfigError, TailraceError
from .model.metrics import Sample, prometheus_text
from .wire.channel import is_loopback

#: Prometheus' text format, by its name in HTTP.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """A Part. `listen` is HOST:PORT on loopback (port 0: any free one); `address` the actual one after start. When
    `ask` raises one of the platform's errors it answers 503 with the reason: a scrape fails rather than lies."""

    def __init__(self, listen: str, ask: Callable[[], Awaitable[Sequence[Sample]]]) -> None:
        self._listen = listen
        self._ask = ask
        self._runner: web.AppRunner | None = None
        self.address = listen

    async def start(self) -> None:
        """Listens. Raises ConfigError where it cannot, and beyond loopback."""
        host, _, port = self._listen.rpartition(":")
        host = host.strip("[]")
        if not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise ConfigError(f'cannot listen on {self._listen!r}: expected HOST:PORT, such as "127.0.0.1:9464"')
        if not is_loopback(host):
            raise ConfigError(f"refusing to listen on {self._listen}: without authentication only loopback is allowed")
        app = web.Application()
        app.router.add_get("/metrics", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, int(port)).start()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"cannot listen on {self._listen}: {error.strerror or error}; choose another port"
            ) from None
        name, number, *_ = self._runner.addresses[0]
        self.address = f"{name}:{number}"

    async def drain(self, timeout: float) -> None:
        """Nothing is under way for long."""

    async def stop(self) -> None:
        """Closes the listener. Harmless twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            found = await self._ask()
        except TailraceError as error:
            return web.Response(status=503, text=f"{error}\n")
        return web.Response(body=prometheus_text(found).encode(), headers={"Content-Type": CONTENT_TYPE})
