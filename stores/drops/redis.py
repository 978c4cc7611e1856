"""Drops in Redis: a sorted set for each source. A member is partition, cause, version, first and last position, and
then as JSON the number of items, who, why and when."""

from __future__ import annotations

import builtins
import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

from ...model.drop import Cause, Drop, DropRow
from ..redis.script_flags import settles
from ..redis.sort_keys import DIGITS, EACH, LAST, MINUS, digits, packed, unpacked
from ..state.redis_server import StateServer
from .drops import MOST
from .merge import fewer, joined

#: Ranges of one page: a bound on the time that it holds the server.
STEP = 1000

#: KEYS: ranges, sources. ARGV: source, the partition as a member begins; of each range the member's beginning with
#: partition, cause and version, its first and last, the one before and the one behind, items, who, why, when. Answers
#: how many ranges the partition has. `merge.join` says how two become one.
_ADD = settles(
    MINUS
    + """
redis.call('ZADD', KEYS[2], 0, ARGV[1])
for at = 3, #ARGV, 9 do
  local begin, first, last, items = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 5])
  local when, from, to = ARGV[at + 8], ARGV[at + 3], ARGV[at + 4]
  local size = #begin
  while true do
    local near = redis.call('ZREVRANGEBYLEX', KEYS[1], '[' .. begin .. to .. '\\255', '[' .. begin, 'LIMIT', 0, 1)[1]
    local start, stop = near and string.sub(near, size + 1, size + 19), near and string.sub(near, size + 20, size + 38)
    if not near or stop < from then break end
    local known = cjson.decode(string.sub(near, size + 39))
    local both = minus(stop < last and stop or last, start > first and start or first) + 1
    items = items + tonumber(known[1]) - math.max(0, both)
    if start < first then first = start end
    if stop > last then last = stop end
    if tonumber(known[4]) > tonumber(when) then when = known[4] end
    redis.call('ZREM', KEYS[1], near)
  end
  local told = cjson.encode({string.format('%.0f', items), ARGV[at + 6], ARGV[at + 7], when})
  redis.call('ZADD', KEYS[1], 0, begin .. first .. last .. told)
end
return redis.call('ZLEXCOUNT', KEYS[1], '[' .. ARGV[2], '(' .. ARGV[2] .. '\\255')
"""
)
#: KEYS: ranges. ARGV: how many members are replaced; these members; the new ones. Nothing is done when one of them is
#: gone.
_REPLACE = settles(
    EACH
    + """
local gone, come, count = {}, {}, tonumber(ARGV[1])
for at = 2, 1 + count do
  if not redis.call('ZSCORE', KEYS[1], ARGV[at]) then return 0 end
  gone[#gone + 1] = ARGV[at]
end
for at = 2 + count, #ARGV do
  come[#come + 1] = 0
  come[#come + 1] = ARGV[at]
end
each(1, gone, 'ZREM', KEYS[1])
each(2, come, 'ZADD', KEYS[1])
return 1
"""
)


class RedisDrops:
    """Drops in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._sources = server.key("drops")

    def _key(self, source: str) -> str:
        return self._server.key("drops", "ranges", source)

    async def add(self, source: str, partition: str, drops: Sequence[Drop], below: int) -> None:
        if not drops:
            return
        arguments: list[Any] = [source, packed(partition)]
        for drop in joined(drops):
            near = (digits(max(0, drop.first - 1)), digits(drop.last + 1))
            arguments += (_begin(partition, drop), digits(drop.first), digits(drop.last), *near)
            arguments += (drop.items, drop.who, drop.why, repr(drop.at))
        keys, about = [self._key(source), self._sources], f"drops of {source!r}"
        if await self._server.run(_ADD, keys, *arguments, about=about) > 2 * MOST:
            await self._thin(source, partition, below)

    async def _thin(self, source: str, partition: str, below: int) -> None:
        """Merges ranges below `below` into fewer. When another process changed them meanwhile nothing is done: the next
        addition tries again."""
        rows = [(member, _row(source, member).drop) async for member in self._members(source, packed(partition))]
        old = [(member, drop) for member, drop in rows if drop.last < below]
        few = [_member(partition, drop) for drop in fewer([drop for _, drop in old], MOST)]
        await self._server.run(_REPLACE, [self._key(source)], len(old), *(member for member, _ in old), *few)

    async def _members(self, source: str, begin: bytes) -> AsyncIterator[bytes]:
        """Yields the members of the set that begin with `begin`, in their order."""
        low = b"[" + begin
        while True:
            page = await self._server.call("ZRANGEBYLEX", self._key(source), low, b"(" + begin + LAST, "LIMIT", 0, STEP)
            for member in page:
                yield member
            if len(page) < STEP:
                return
            low = b"(" + page[-1]

    async def within(self, source: str, partition: str, first: int, last: int) -> list[Drop]:
        drops = [_row(source, member).drop async for member in self._members(source, packed(partition))]
        return sorted((drop for drop in drops if drop.last >= first and drop.first <= last), key=_order)

    async def list(self, source: str, limit: int, skip: int = 0) -> builtins.list[DropRow]:
        found: builtins.list[DropRow] = []
        if source:
            sources = [source]
        else:
            sources = [name.decode() for name in await self._server.call("ZRANGE", self._sources, 0, -1)]
        for own in sources:
            async for rows in self._by_partition(own):
                found += rows[skip : skip + limit - len(found)]
                skip = max(0, skip - len(rows))
                if len(found) >= limit:
                    return found
        return found

    async def _by_partition(self, source: str) -> AsyncIterator[builtins.list[DropRow]]:
        """Yields the rows of a source, partition by partition, each by position."""
        rows: builtins.list[DropRow] = []
        async for member in self._members(source, b""):
            row = _row(source, member)
            if rows and rows[-1].partition != row.partition:
                yield sorted(rows, key=lambda each: _order(each.drop))
                rows = []
            rows.append(row)
        yield sorted(rows, key=lambda each: _order(each.drop))


def _order(drop: Drop) -> tuple[int, int, int]:
    return drop.first, drop.cause, drop.version


def _begin(partition: str, drop: Drop) -> bytes:
    return packed(partition) + b"%02d" % drop.cause + digits(drop.version)


def _member(partition: str, drop: Drop) -> bytes:
    told = json.dumps((str(drop.items), drop.who, drop.why, repr(drop.at)))
    return _begin(partition, drop) + digits(drop.first) + digits(drop.last) + told.encode()


def _row(source: str, member: bytes) -> DropRow:
    (partition,), rest = unpacked(member, 1)
    ends = (2, *(2 + DIGITS * count for count in (1, 2, 3)))
    version, first, last = (int(rest[begin:end]) for begin, end in pairwise(ends))
    items, who, why, at = json.loads(rest[ends[-1] :])
    return DropRow(source, partition, Drop(first, last, int(items), Cause(int(rest[:2])), version, who, why, float(at)))
