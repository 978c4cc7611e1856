"""Ownership in Redis: a field of one hash per source and partition, and a set of their names in order.

Each write is one script, under the server's clock: versions are max(old + 1, microseconds since 1970) and epochs
max(old + 1, seconds since 2020), so that data older than the last take cannot give an epoch a second time, as long as a
row is taken less than once a second on average. A script first checks that the server is the one that gave the streams
to their owners (`stores/state/redis_identity.py`).
"""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Sequence
from typing import Any

from ...model.errors import InvalidRequest, StaleFence
from ..redis.script_flags import reads, settles
from ..redis.sort_keys import packed, unpacked
from ..state.redis_identity import HOME
from ..state.redis_server import StateServer, unavailable
from .epochs import EPOCHS_BY_CLOCK, EPOCHS_FROM
from .ownership import OwnedRow, Owner

#: KEYS[7]: the names. ARGV[6] is the name of the row. Keeps a row under a new version, and remembers the highest one.
_KEEP = (
    HOME
    + """
local row = redis.call('HGET', KEYS[2], ARGV[6])
row = row and cjson.decode(row)
local function keep(version, ...)
  version = whole(math.max(version, now))
  redis.call('HSET', KEYS[2], ARGV[6], cjson.encode({version, ...}))
  redis.call('ZADD', KEYS[7], 0, ARGV[6])
  local mark = tonumber(redis.call('HGET', KEYS[1], 'mark') or '0')
  if tonumber(version) > mark then redis.call('HSET', KEYS[1], 'mark', version) end
  return version
end
"""
)
#: ARGV: the version seen, holder, lease, schedulers.
_TAKE = settles(
    _KEEP
    + f"""
if wait > 0 then return {{whole(wait), moved, run}} end
if (row and row[VERSION] or '0') ~= ARGV[7] then return {{'0', moved, run}} end
local by_clock = math.min(math.floor(now / 1000000) - {EPOCHS_FROM}, {EPOCHS_BY_CLOCK})
local epoch = whole(math.max(row and tonumber(row[EPOCH]) + 1 or 1, by_clock))
local version = keep(row and tonumber(row[VERSION]) + 1 or 1, epoch, ARGV[8], ARGV[9], ARGV[10])
return {{'0', moved, run, version, epoch}}
"""
)
#: ARGV: epoch; and the schedulers and the version seen (0: any), or nothing, to release. Answers the row; nothing when
#: it was released before; or nothing and the newest epoch when the epoch, or the version, is another.
_HOLD = settles(
    _KEEP
    + """
local function answer(...) return {whole(wait), moved, run, ...} end
if not row or row[EPOCH] ~= ARGV[7] then return answer('', row and row[EPOCH] or 'none') end
if row[HOLDER] ~= '' and (ARGV[9] or '0') ~= '0' and row[VERSION] ~= ARGV[9] then return answer('', row[EPOCH]) end
if row[HOLDER] ~= '' then
  local holder, schedulers = row[HOLDER], ARGV[8]
  if not schedulers then holder, schedulers = '', '[]' end
  keep(tonumber(row[VERSION]) + 1, row[EPOCH], holder, row[LEASE], schedulers)
  return answer(redis.call('HGET', KEYS[2], ARGV[6]))
end
return answer('')
"""
)
#: KEYS: rows, names. ARGV: the name behind which to begin, how many. Answers names and rows.
_LIST = reads("""
local names = redis.call('ZRANGEBYLEX', KEYS[2], '(' .. ARGV[1], '+', 'LIMIT', 0, ARGV[2])
local answer = {}
for place, name in ipairs(names) do
  answer[2 * place - 1], answer[2 * place] = name, redis.call('HGET', KEYS[1], name)
end
return answer
""")


class RedisOwnership:
    """Ownership in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._rows, self._names = server.key("ownership"), server.key("ownership", "names")

    async def read(self, source: str, partition: str) -> Owner | None:
        row = await self._server.call("HGET", self._rows, packed(source, partition), about=f"source {source!r}")
        return None if row is None else self._owner(row)

    async def take(
        self, source: str, partition: str, holder: str, lease: float, seen: int, schedulers: Sequence[str] = ()
    ) -> Owner | None:
        if not holder:
            raise InvalidRequest(f"source {source!r}: an owner needs a name")
        if not (math.isfinite(lease) and lease > 0):
            raise InvalidRequest(f"source {source!r}: a lease of {lease} seconds: expected a positive number")
        if quiet := self._server.quiet():
            raise unavailable(quiet)
        asked = (seen, holder, repr(float(lease)), json.dumps([*schedulers]))
        wait, answer = await self._run(_TAKE, source, partition, *asked)
        if wait:
            raise unavailable(wait)
        if not answer:
            return None
        version, epoch = map(int, answer)
        self._server.seen = max(self._server.seen, version)
        return Owner(version, epoch, holder, lease, tuple(schedulers))

    async def renew(
        self, source: str, partition: str, epoch: int, schedulers: Sequence[str], seen: int = 0
    ) -> Owner | None:
        _, (row, *newest) = await self._run(_HOLD, source, partition, epoch, json.dumps([*schedulers]), seen)
        if newest and newest[0] == b"%d" % epoch:
            return None
        if newest:
            raise _stale(source, epoch, newest[0])
        if not row:
            raise StaleFence(f"source {source!r}: epoch {epoch} was released; nothing was written")
        return self._owner(row)

    async def release(self, source: str, partition: str, epoch: int) -> None:
        _, (_, *newest) = await self._run(_HOLD, source, partition, epoch)
        if newest:
            raise _stale(source, epoch, newest[0])

    async def list(self, limit: int, after: tuple[str, str] = ("", "")) -> builtins.list[OwnedRow]:
        keys = [self._rows, self._names]
        answer = await self._server.run(_LIST, keys, packed(*after) if any(after) else b"", limit)
        found = []
        for name, row in zip(answer[::2], answer[1::2], strict=True):
            (source, partition), _ = unpacked(name, 2)
            found.append(OwnedRow(source, partition, self._owner(row)))
        return found

    async def _run(self, script: Any, source: str, partition: str, *asked: Any) -> tuple[float, builtins.list[Any]]:
        """Runs a script over HOME; returns the seconds for which no stream is taken yet, and the script's own
        answer."""
        keys, arguments = await self._server.home()
        keys.append(self._names)
        about = f"source {source!r}"
        answer = await self._server.run(script, keys, *arguments, packed(source, partition), *asked, about=about)
        wait, moved, run, *own = answer
        self._server.note_home(int(wait), moved, run)
        return int(wait) / 1e6, own

    def _owner(self, row: bytes) -> Owner:
        version, epoch, holder, lease, schedulers = json.loads(row)
        self._server.seen = max(self._server.seen, int(version))
        return Owner(int(version), int(epoch), holder, float(lease), tuple(json.loads(schedulers)))


def _stale(source: str, epoch: int, newest: bytes) -> StaleFence:
    return StaleFence(
        f"source {source!r}: epoch {epoch} is over (the newest is {newest.decode()}); nothing was written"
    )
