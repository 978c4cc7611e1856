"""The downstream service of the demo: a catalogue of symbols over HTTP that misbehaves on purpose, the same way in
every run.

It misbehaves in two ways, both decided by `Misbehaviour`, which is pure: some files are answered 503 at first (a
failure for a moment), and for a while everything is answered 429 with Retry-After (a request to wait).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from aiohttp import web

#: Largest body taken, bytes: the symbols of the largest modules are a tenth of this.
MAX_BODY = 4 << 20

SYMBOLS = "/symbols"


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """The ways in which the catalogue answers a post.

    seed            makes the choice of files reproducible
    failing         share of the files whose first posts are answered 503 (one or two of them)
    throttle_from, throttle_until    posts, counted from 0, that are answered 429
    retry_after     seconds that a 429 asks for
    """

    seed: int = 7
    failing: float = 0.05
    throttle_from: int = 0
    throttle_until: int = 0
    retry_after: int = 1

    def answer(self, path: str, posts: int, ordinal: int) -> int:
        """The status for a post about `path`, which is the `posts`-th about it that was not throttled, and the
        `ordinal`-th of all, both from 0."""
        if self.throttle_from <= ordinal < self.throttle_until:
            return 429
        choice = random.Random(f"{self.seed} {PurePath(path).name}")
        failures = choice.choice((1, 1, 2)) if choice.random() < self.failing else 0
        return 503 if posts < failures else 200


class Catalogue:
    """The server of the catalogue, a part; `url` is known once it started."""

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self._misbehaviour = misbehaviour
        self._symbols: dict[str, int] = {}
        self._posts: dict[str, int] = {}
        self._ordinal = 0
        self.answers: dict[int, int] = {}
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listens on a free port of loopback."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post(SYMBOLS, self._post)
        app.router.add_get(SYMBOLS, self._get)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port, *_ = self._runner.addresses[0]
        self.url = f"http://{host}:{port}"

    async def _post(self, request: web.Request) -> web.Response:
        body: Any = await request.json()
        try:
            path, count = str(body["path"]), len(body["symbols"])
        except (KeyError, TypeError):
            raise web.HTTPUnprocessableEntity(text="expected path and symbols") from None
        posts = self._posts.get(path, 0)
        status = self._misbehaviour.answer(path, posts, self._ordinal)
        self._ordinal += 1
        self.answers[status] = self.answers.get(status, 0) + 1
        if status == 429:
            return web.Response(status=429, headers={"Retry-After": str(self._misbehaviour.retry_after)})
        self._posts[path] = posts + 1
        if status == 200:
            self._symbols[path] = count
        return web.Response(status=status)

    async def _get(self, request: web.Request) -> web.Response:
        count = self._symbols.get(request.query.get("path", ""))
        return web.json_response({"symbols": count}, status=404 if count is None else 200)

    @property
    def modules(self) -> int:
        """Number of files in the catalogue."""
        return len(self._symbols)

    @property
    def symbols(self) -> int:
        """Number of symbols in the catalogue."""
        return sum(self._symbols.values())

    async def drain(self, timeout: float) -> None:
        """Stops the server: it has nothing to finish."""
        await self.stop()

    async def stop(self) -> None:
        """Ends the server."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
