"""A store that answers badly when it is told to: an HTTP proxy before a real one."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from aiohttp import web


class Faults:
    """An HTTP proxy before the store. `answer` says how the store answers a request instead; None: as it does."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.endpoint = ""
        self.requests: list[str] = []
        self.answer: Callable[[web.Request], int | None] = lambda request: None

    async def __aenter__(self) -> Faults:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.endpoint = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        status = self.answer(request)
        if status is not None:
            return web.Response(status=status, text="<Error><Code>SlowDown</Code></Error>")
        async with self._session.request(
            request.method, self.target + request.raw_path, headers=request.headers, data=await request.read()
        ) as found:
            body = await found.read()
            headers = {name: value for name, value in found.headers.items() if name.lower() != "transfer-encoding"}
            return web.Response(status=found.status, headers=headers, body=None if request.method == "HEAD" else body)
