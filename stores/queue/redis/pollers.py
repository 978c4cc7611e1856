"""The pollers of a queue in Redis: a sorted set by the server's time of each poller's last sign of life."""

from __future__ import annotations

from ...redis.server import RedisServer
from ..poller import SEEN
from .script import queue_script

#: ARGV: time, poller, whether it is there, how long a sign of life counts (µs). Answers how many pollers are there.
_COUNT = queue_script(
    "allow-oom",
    """
local recent = tonumber(ARGV[4])
if ARGV[3] == '1' then
  call('ZADD', base .. 'pollers', now, ARGV[2])
  call('ZREMRANGEBYSCORE', base .. 'pollers', '-inf', now - 10 * recent)
end
return call('ZCOUNT', base .. 'pollers', now - recent, now + recent)
""",
)


class RedisPollers:
    """The Pollers of a queue. `base` is the beginning of the queue's keys."""

    def __init__(self, server: RedisServer, base: str) -> None:
        self._server = server
        self._base = base

    async def count(self, me: str, *, here: bool) -> int:
        arguments = (-1, me, int(here), int(SEEN * 1e6))
        return int(await self._server.run(_COUNT, [self._base], *arguments, about="a count of pollers"))

    async def leave(self, me: str) -> None:
        await self._server.call("ZREM", f"{self._base}pollers", me, about="the end of a poller")
