"""Replays in Redis: a hash of texts by number, and the numbers of replays that go on and of those that are over."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from ...model.errors import InvalidRequest
from ...model.replay import OVER, Replay, ReplayState, moved
from ..redis.script_flags import grows, reads, settles
from ..state.redis_server import StateServer
from .replays import KEPT

#: KEYS: replays, going, over, book. ARGV: text, how many replays that are over are kept. Answers the number.
_ADD = grows("""
local number = string.format('%.0f', redis.call('HINCRBY', KEYS[4], 'number', 1))
redis.call('HSET', KEYS[1], number, ARGV[1])
redis.call('ZADD', KEYS[2], number, number)
for _, old in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1 - tonumber(ARGV[2]))) do
  redis.call('HDEL', KEYS[1], old)
  redis.call('ZREM', KEYS[3], old)
end
return number
""")
#: ARGV: number, the text before and after, whether the replay is over then. Answers whether the text was as before.
_MOVE = settles("""
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[1], ARGV[1])
end
return 1
""")
#: ARGV: how many, whether those that are over count. Answers numbers and texts, the newest first.
_LIST = reads("""
local answer, found = {}, redis.call('ZREVRANGE', KEYS[2], 0, tonumber(ARGV[1]) - 1)
if ARGV[2] == '1' then
  for _, number in ipairs(redis.call('ZREVRANGE', KEYS[3], 0, tonumber(ARGV[1]) - 1)) do found[#found + 1] = number end
  table.sort(found, function(one, other) return tonumber(one) > tonumber(other) end)
end
for place = 1, math.min(#found, tonumber(ARGV[1])) do
  answer[2 * place - 1], answer[2 * place] = found[place], redis.call('HGET', KEYS[1], found[place])
end
return answer
""")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Replay).decode


class RedisReplays:
    """Replays in the state on one server. The number in a stored text is 0: the field's name has the number."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._keys = [server.key("replays"), *(server.key("replays", name) for name in ("going", "over", "book"))]

    async def add(self, replay: Replay) -> Replay:
        text = _encode(replace(replay, number=0))
        number = await self._server.run(_ADD, self._keys, text, KEPT, about="replays")
        return replace(replay, number=int(number))

    async def get(self, number: int) -> Replay | None:
        text = await self._server.call("HGET", self._keys[0], number, about="replays")
        return None if text is None else replace(_decode(text), number=number)

    async def list(self, limit: int, going: bool = False) -> builtins.list[Replay]:
        if limit < 1:
            return []
        found = await self._server.run(_LIST, self._keys, limit, int(not going), about="replays")
        pairs = zip(found[::2], found[1::2], strict=True)
        return [replace(_decode(text), number=int(number)) for number, text in pairs]

    async def answer(self, answer: Replay) -> Replay:
        while True:
            before = await self._known(answer.number)
            if before.state is not ReplayState.ASKED:
                return before
            if await self._put(before, answer):
                return answer

    async def move(self, number: int, state: ReplayState, at: float, counts: Mapping[str, int]) -> Replay:
        while True:
            before = await self._known(number)
            after = moved(before, state, at, counts)
            if after is before:
                return before
            if await self._put(before, after):
                return after

    async def _known(self, number: int) -> Replay:
        if (replay := await self.get(number)) is None:
            raise InvalidRequest(f"there is no replay {number}: `tailrace replay list` shows all replays")
        return replay

    async def _put(self, before: Replay, after: Replay) -> bool:
        """Replaces a replay that was read as `before`. False: it is another by now, and nothing was changed."""
        texts = [_encode(replace(each, number=0)) for each in (before, after)]
        over = int(after.state in OVER)
        return bool(await self._server.run(_MOVE, self._keys, after.number, *texts, over, about="replays"))
