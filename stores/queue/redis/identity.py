"""The identity of a server: tells whether it is the one that granted the leases, with all that it wrote. After a
failover, or on an older copy of its files, claims may be missing: then nothing is leased for the lease of a source.

The queue itself notes the server that wrote last (`home`: Redis' run_id, which changes with every start), and the
script of every look and claim compares it. A server with another run_id is trusted at once only if it is the same
server started again: it was started after this process last heard of the former one, has all writes that this process
knows of, and writes durably. In all other cases the queue waits; so does a process that meets a restarted server
without having known the former one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ....foundation.clock import Clock
from ...redis.server import RedisServer
from .script import queue_script

#: Seconds by which a server may be older than it says: INFO gives whole seconds.
SLACK = 2.0
#: Seconds of silence after which no restarted server is trusted: another one may have served in the meantime.
SILENCE = 60.0

_LOG = logging.getLogger("tailrace.stores")

#: ARGV: time, the home and position that this process knows, seconds since it last heard of the server, whether a
#: restart loses nothing, the wait (µs). Answers the home, until when nothing is leased, and whether that wait is new.
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
    """The identity of the server under a queue. `wait`: the lease of a source, seconds. `durable`: a restart of the
    server loses nothing."""

    def __init__(self, server: RedisServer, base: str, wait: float, clock: Clock, *, durable: bool) -> None:
        self._server = server
        self._base = base
        self._wait = wait
        self._clock = clock
        self._durable = durable
        self.known = ""  # the server's run_id, as far as is known
        self._heard = clock.monotonic()
        self.position = 0

    @property
    def words(self) -> tuple[str, int]:
        """Arguments of a script that must run on the known server."""
        return self.known, self.position

    def heard(self, position: int = 0) -> None:
        """Notes that the server just now was the known one, and has written this much."""
        self.position = max(self.position, position)
        self._heard = self._clock.monotonic()

    async def look(self, time: Callable[[], int]) -> None:
        """Finds out which server this is. The queue's own scripts do the waiting."""
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
            about="the server's identity",
        )
        self.known = here.decode()
        self._heard = self._clock.monotonic()
        if news:
            _LOG.warning(
                "%s: this server did not grant the current leases: it was promoted, restarted or put back from a copy; "
                "nothing is handed out for %.0f s (the lease of a source)",
                self._server.name,
                self._wait,
            )
