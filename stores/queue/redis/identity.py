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
from ....model.errors import NotConnected
from ....model.reopening import MISSING, Trouble
from ...redis.server import RedisServer
from .script import queue_script

#: Seconds by which a server may be older than it says: INFO gives whole seconds.
SLACK = 2.0
#: Seconds of silence after which no restarted server is trusted: another one may have served in the meantime.
SILENCE = 60.0

#: Seconds for which operators are told that data was found to be older than it was.
TOLD = 86_400.0
#: Bits of an id that count within a millisecond.
_SERIAL = 22

_LOG = logging.getLogger("tailrace.stores")

#: ARGV: time, the home and position that this process knows, seconds since it last heard of the server, whether a
#: restart loses nothing, the wait (µs), milliseconds and number of the last id that it knows, and the epoch of the
#: cluster's node that had the queue (empty: no cluster). Answers the home, until when nothing is leased, whether that
#: wait is new, when data was found to be older than a process knew (µs; 0: never), and the node's epoch. Answers -1 and
#: the epoch if a queue that this process knows is not here, and the node's claim to the slot is older than of the node
#: that had it: another queue would begin beside the first.
_LOOK = queue_script(
    "allow-oom",
    """
local info = redis.pcall('INFO', 'server')
if type(info) ~= 'string' then info = '' end
local here = string.match(info, 'run_id:(%w+)') or 'unknown'
local up = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or '0')
local facts = fields('meta', {'home', 'position', 'quiet', 'older'})
local known, position = ARGV[2], tonumber(ARGV[3])
local epoch = 0
if ARGV[9] ~= '' then
  local cluster = redis.pcall('CLUSTER', 'INFO')
  epoch = type(cluster) == 'string' and tonumber(string.match(cluster, 'cluster_my_epoch:(%d+)') or '0') or 0
  if not facts[1] and known ~= '' and epoch < tonumber(ARGV[9]) then return {-1, epoch} end
end
local ms, serial = meta('ms'), meta('serial')
local lacks = ms < tonumber(ARGV[7]) or ms == tonumber(ARGV[7]) and serial < tonumber(ARGV[8])
local back = lacks or tonumber(facts[2] or '0') < position
local moved_here = facts[1] and facts[1] ~= here
local same = facts[1] == known and up <= tonumber(ARGV[4]) and ARGV[5] == '1'
local quiet, news = tonumber(facts[3] or '0'), 0
if back or (moved_here and not same) then
  quiet = max(quiet, now + tonumber(ARGV[6]))
  news = 1
end
local older = facts[4] or '0'
if back then
  older = string.format('%.0f', now)
  position = max(position, tonumber(facts[2] or '0'))
  call('HSET', base .. 'meta', 'position', string.format('%.0f', position), 'older', older)
end
-- Ids go on above those that were given, so that no two workloads have one.
if lacks then call('HSET', base .. 'meta', 'ms', ARGV[7], 'serial', ARGV[8]) end
call('HSET', base .. 'meta', 'home', here, 'quiet', string.format('%.0f', quiet))
return {here, string.format('%.0f', quiet), news, older, epoch}
""",
)


class RedisIdentity:
    """The identity of the server under a queue. `wait`: the lease of a source, seconds. `durable`: a restart of the
    server loses nothing; `cluster`: it is a node of a cluster."""

    def __init__(
        self, server: RedisServer, base: str, wait: float, clock: Clock, *, durable: bool, cluster: bool = False
    ) -> None:
        self._server = server
        self._base = base
        self._wait = wait
        self._clock = clock
        self._durable = durable
        self.known = ""  # the server's run_id, as far as is known
        self._heard = clock.monotonic()
        self.position = 0
        self.last = 0  # the last id that this process was given
        self._epoch: int | str = 0 if cluster else ""
        self._older = 0.0  # when data was found to be older than a process knew, by the server's clock; 0: never

    @property
    def words(self) -> tuple[str, int]:
        """Arguments of a script that must run on the known server."""
        return self.known, self.position

    def heard(self, position: int = 0) -> None:
        """Notes that the server just now was the known one, and has written this much."""
        self.position = max(self.position, position)
        self._heard = self._clock.monotonic()

    def stored(self, last: int) -> None:
        """Notes the last id that the server gave."""
        self.last = max(self.last, last)

    def troubles(self) -> list[Trouble]:
        """The trouble that data is missing, for operators."""
        if not self._older or self._clock.wall() - self._older > TOLD:
            return []
        what = (
            f"{MISSING}: {self._server.name} came back with data that is older than what was seen before. Workloads "
            "submitted, and ends noted, in its last moments before that are lost"
        )
        todo = (
            "submit again what was submitted then and is not known any more (tailrace status ID); a planned switch "
            "loses nothing where the old server takes no writes any more before the new one does: docs/redis.md"
        )
        return [Trouble("queue", self._older, what, todo=todo)]

    async def look(self, time: Callable[[], int]) -> None:
        """Finds out which server this is. The queue's own scripts do the waiting."""
        silent = self._clock.monotonic() - self._heard + SLACK
        here, *found = await self._server.run(
            _LOOK,
            [self._base],
            time(),
            self.known,
            self.position,
            f"{silent if silent < SILENCE else -1.0:.3f}",
            int(self._durable),
            int(self._wait * 1e6),
            self.last >> _SERIAL,
            self.last & ((1 << _SERIAL) - 1),
            self._epoch,
            about="the server's identity",
        )
        if here == -1:
            raise NotConnected(
                f"{self._server.name}: the node that has the queue's slot has nothing of the queue, and its claim to "
                f"the slot (epoch {found[0]}) is older than of the node that had it (epoch {self._epoch}): waiting "
                "until the cluster agrees"
            )
        _, news, older, epoch = found
        if self._epoch != "":
            self._epoch = epoch
        before, self._older = self._older, float(older) / 1e6
        if self._older > before:
            for trouble in self.troubles():
                _LOG.error("%s; %s", trouble.what, trouble.todo)
        self.known = here.decode()
        self._heard = self._clock.monotonic()
        if news:
            _LOG.warning(
                "%s: this server did not grant the current leases: it was promoted, restarted or put back from a copy; "
                "nothing is handed out for %.0f s (the lease of a source)",
                self._server.name,
                self._wait,
            )
