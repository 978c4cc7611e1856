"""The identity of a server: is it the one that handed out what is out, with all that it wrote? After a failover, or on
an older copy of its files, claims that were made may be missing: then nothing is leased for the lease of a source.

Which server wrote last stands in the queue itself (`home`: Redis' run_id, another one after every start), and every
look and every claim compares it in its script. Another one is trusted at once only if it is the same server started
again: it was started after this process last heard of the former one, has all that this process knows was written,
and writes durably. All else waits; so does whoever meets a restarted server without having known the former one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ....foundation.clock import Clock
from ...redis.server import RedisServer
from .script import queue_script

#: Seconds by which a server may be older than it says: INFO tells whole ones.
SLACK = 2.0
#: Seconds of silence after which nobody is trusted: whoever answers then may have been something else meanwhile.
SILENCE = 60.0

_LOG = logging.getLogger("tailrace.stores")

#: ARGV: time, the home and position that this process knows, for how many seconds it has not heard of it, whether a
#: restart loses nothing, how long to wait (µs). Answers the home, until when nothing is leased, whether that is news.
_LOOK = queue_script(
    "allow-oom",
    """
local info = redis.pcall('INFO', 'server')
if type(info) ~= 'string' then info = '' end
local here = string.match(info, 'run_id:(%w+)') or 'unknown'
local up = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or '0')
local facts = fields('meta', {'home', 'position', 'quiet'})
local known, position = ARGV[2], tonumber(ARGV[3])
local back = tonumber(facts[2] or '0') < position
local moved_here = facts[1] and facts[1] ~= here
local same = facts[1] == known and up <= tonumber(ARGV[4]) and ARGV[5] == '1'
local quiet, news = tonumber(facts[3] or '0'), 0
if back or (moved_here and not same) then
  quiet = max(quiet, now + tonumber(ARGV[6]))
  news = 1
end
if back then call('HSET', base .. 'meta', 'position', ARGV[3]) end
call('HSET', base .. 'meta', 'home', here, 'quiet', string.format('%.0f', quiet))
return {here, string.format('%.0f', quiet), news}
""",
)


class RedisIdentity:
    """The identity of the server under a queue. `wait` is the lease of a source, seconds; `durable`: a restart of the
    server loses nothing."""

    def __init__(self, server: RedisServer, base: str, wait: float, clock: Clock, *, durable: bool) -> None:
        self._server = server
        self._base = base
        self._wait = wait
        self._clock = clock
        self._durable = durable
        self.known = ""  # where we are, as far as we know
        self._heard = clock.monotonic()
        self.position = 0

    @property
    def words(self) -> tuple[str, int]:
        """What a script is told that must be at home."""
        return self.known, self.position

    def heard(self, position: int = 0) -> None:
        """Notes that the server is at home and has written so much, as it says just now."""
        self.position = max(self.position, position)
        self._heard = self._clock.monotonic()

    async def look(self, time: Callable[[], int]) -> None:
        """Finds out where we are. The queue's own scripts do the waiting."""
        silent = self._clock.monotonic() - self._heard + SLACK
        here, _, news = await self._server.run(
            _LOOK,
            [self._base],
            time(),
            self.known,
            self.position,
            f"{silent if silent < SILENCE else -1.0:.3f}",
            int(self._durable),
            int(self._wait * 1e6),
            about="its home",
        )
        self.known = here.decode()
        self._heard = self._clock.monotonic()
        if news:
            _LOG.warning(
                "%s: not the server that handed out what is out, but one that was promoted, restarted or put back from "
                "a copy: nothing is handed out for %.0f s (the lease of a source)",
                self._server.name,
                self._wait,
            )
