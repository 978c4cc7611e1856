"""Segments in Redis: a sorted set for each source, whose members begin with the first position and the one behind the
last."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...model.segment import Segment
from ..redis.script_flags import grows, reads, settles
from ..redis.sort_keys import DIGITS, EACH, digits
from ..state.redis_server import StateServer

#: Segments of one script: a bound on the time that it holds the server.
STEP = 1000

#: KEYS: segments. ARGV: the first new position, members. Answers whether that position follows the last segment.
_APPEND = grows(
    EACH
    + """
local last = redis.call('ZREVRANGEBYLEX', KEYS[1], '+', '-', 'LIMIT', 0, 1)[1]
local after = last and string.sub(last, 20, 38) or '0000000000000000000'
if ARGV[1] ~= after then return 0 end
local added = {}
for at = 2, #ARGV do
  added[#added + 1] = 0
  added[#added + 1] = ARGV[at]
end
each(2, added, 'ZADD', KEYS[1])
return 1
"""
)
#: ARGV: position, how many.
_READ = reads("""
local former = redis.call('ZREVRANGEBYLEX', KEYS[1], '[' .. ARGV[1] .. '\\255', '-', 'LIMIT', 0, 1)[1]
local from = former and string.sub(former, 20, 38) > ARGV[1] and '[' .. former or '[' .. ARGV[1]
return redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, ARGV[2])
""")
#: ARGV: the position below which all is removed, how many at most. Answers how many were removed.
_TRIM = settles(
    EACH
    + """
local last = redis.call('ZREVRANGEBYLEX', KEYS[1], '+', '-', 'LIMIT', 0, 1)[1]
local gone = {}
for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], '-', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])) do
  if string.sub(member, 20, 38) > ARGV[1] or member == last then break end
  gone[#gone + 1] = member
end
return each(1, gone, 'ZREM', KEYS[1])
"""
)


class RedisSegments:
    """Segments in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server

    def _key(self, source: str) -> str:
        return self._server.key("segments", source)

    async def append(self, source: str, segments: Sequence[Segment]) -> bool:
        if not segments:
            return True
        members = [digits(each.first) + digits(each.after) + json.dumps(each).encode() for each in segments]
        first = digits(segments[0].first)
        return bool(await self._server.run(_APPEND, [self._key(source)], first, *members, about=f"source {source!r}"))

    async def read(self, source: str, position: int, limit: int) -> list[Segment]:
        arguments = (digits(max(0, position)), max(0, limit))
        found = await self._server.run(_READ, [self._key(source)], *arguments, about=f"source {source!r}")
        return [_segment(member) for member in found]

    async def last(self, source: str) -> Segment | None:
        command = ("ZREVRANGEBYLEX", self._key(source), "+", "-", "LIMIT", 0, 1)
        found = await self._server.call(*command, about=f"source {source!r}")
        return _segment(found[0]) if found else None

    async def trim(self, source: str, below: int) -> None:
        arguments = (digits(max(0, below)), STEP)
        while await self._server.run(_TRIM, [self._key(source)], *arguments, about=f"source {source!r}") == STEP:
            pass


def _segment(member: bytes) -> Segment:
    return Segment(*json.loads(member[2 * DIGITS :]))
