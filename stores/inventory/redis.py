"""The inventory in Redis. Each source has its names with their versions by position, the same members by name, and its
floor."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.errors import InvalidRequest
from ..redis.script_flags import grows, settles
from ..redis.sort_keys import BEFORE, packed, unpacked
from ..state.redis_server import StateServer
from .inventory import Entries, InventoryEntry

#: Entries of one script: a bound on the time that it holds the server.
STEP = 1000

#: KEYS: by position, by name. ARGV: members. Answers how many were new.
_OFFER = grows("""
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local end_, new = last and tonumber(last) + 1 or 0, 0
for _, member in ipairs(ARGV) do
  if not redis.call('ZSCORE', KEYS[1], member) then
    redis.call('ZADD', KEYS[1], string.format('%.0f', end_ + new), member)
    redis.call('ZADD', KEYS[2], 0, member)
    new = new + 1
  end
end
return new
""")
#: KEYS: by position, by name, floor. ARGV: how many of the greatest names are kept above the floor. Answers the floor,
#: as a member begins, which never goes back.
_RAISE = settles(
    BEFORE
    + """
local former = redis.call('GET', KEYS[3]) or ''
local member = redis.call('ZREVRANGE', KEYS[2], ARGV[1], ARGV[1])[1]
local name = member and string.sub(member, 1, string.find(member, '\\0\\1', 1, true) + 1) or ''
if not before(former, name) then return former end
redis.call('SET', KEYS[3], name)
return name
"""
)
#: KEYS: by position, by name. ARGV: the member behind which to look, or nothing; the floor, as a member begins; the
#: position below which entries may be removed; how many to look at. Answers the last member that was looked at, if
#: there may be more.
_SINK = settles("""
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local from = ARGV[1] == '' and '-' or '(' .. ARGV[1]
local under = redis.call('ZRANGEBYLEX', KEYS[2], from, '(' .. ARGV[2] .. '\\255', 'LIMIT', 0, ARGV[4])
local below = math.min(tonumber(ARGV[3]), tonumber(last or '0'))
for _, member in ipairs(under) do
  if tonumber(redis.call('ZSCORE', KEYS[1], member)) < below then
    redis.call('ZREM', KEYS[1], member)
    redis.call('ZREM', KEYS[2], member)
  end
end
return #under == tonumber(ARGV[4]) and under[#under] or ''
""")


class RedisInventory:
    """An Inventory in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server

    def _keys(self, source: str) -> list[str]:
        return [self._server.key("inventory", name, source) for name in ("positions", "names", "floor")]

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        try:
            members = [packed(*entry) for entry in entries]
        except UnicodeEncodeError as error:
            text = error.object
            raise InvalidRequest(
                f"source {source!r}: an entry's name or version is not UTF-8 text, near "
                f"{text[max(0, error.start - 40) : error.end]!a}; rename it"
            ) from None
        new = 0
        for first in range(0, len(members), STEP):
            step = members[first : first + STEP]
            new += await self._server.run(_OFFER, self._keys(source)[:2], *step, about=f"source {source!r}")
        return new

    async def read(self, source: str, position: int, limit: int) -> Entries:
        by_position = self._keys(source)[0]
        command = ("ZRANGEBYSCORE", by_position, position, "+inf", "WITHSCORES", "LIMIT", 0, limit)
        answer = await self._server.call(*command, about=f"source {source!r}")
        found = Entries([], [], [])
        for member, at in zip(answer[::2], answer[1::2], strict=True):
            (name, version), _ = unpacked(member, 2)
            found.positions.append(int(at))
            found.names.append(name)
            found.versions.append(version)
        return found

    async def end(self, source: str) -> int:
        command = ("ZREVRANGE", self._keys(source)[0], 0, 0, "WITHSCORES")
        last = await self._server.call(*command, about=f"source {source!r}")
        return int(last[1]) + 1 if last else 0

    async def forget(self, source: str) -> None:
        await self._server.call("UNLINK", *self._keys(source), about=f"source {source!r}")

    async def floor(self, source: str) -> str:
        return _name(await self._server.call("GET", self._keys(source)[2], about=f"source {source!r}") or b"")

    async def raise_floor(self, source: str, overlap: int, below: int) -> str:
        keys, about = self._keys(source), f"source {source!r}"
        floor = await self._server.run(_RAISE, keys, overlap, about=about)
        at = b""
        while floor and (at := await self._server.run(_SINK, keys[:2], at, floor, below, STEP, about=about)):
            pass
        return _name(floor)


def _name(floor: bytes) -> str:
    return unpacked(floor, 1)[0][0] if floor else ""
