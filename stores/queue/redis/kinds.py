"""Kinds and lanes of a queue in Redis: any node may add some, and every node reads the ones that others added."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from ....model.workload import Kind
from ...redis.server import RedisServer
from ..kinds import Kinds
from .script import queue_script

#: ARGV: time, then for each kind the words of its lane and its own words, as JSON. Its number is its place in the list.
_ADD = queue_script(
    "",
    """
for i = 2, #ARGV, 2 do
  if call('HEXISTS', base .. 'kind_numbers', ARGV[i + 1]) == 0 then
    local lane = call('HGET', base .. 'lane_numbers', ARGV[i])
    if not lane then
      lane = tostring(call('HINCRBY', base .. 'meta', 'lanes', 1))
      call('HSET', base .. 'lane_numbers', ARGV[i], lane)
    end
    call('HSET', base .. 'kind_numbers', ARGV[i + 1], call('RPUSH', base .. 'kinds', lane .. ' ' .. ARGV[i + 1]))
  end
end
return 1
""",
)


class RedisKinds(Kinds):
    """Kinds and lanes by number. Numbers rise in the order in which they become visible, so no look misses one."""

    def __init__(self, server: RedisServer, base: str) -> None:
        super().__init__()
        self._server = server
        self._base = base
        self._looking = asyncio.Lock()
        self._known: list[bytes] = []  # the list as it was read

    async def look(self) -> None:
        """Reads the kinds that were added since the last look."""
        async with self._looking:
            known = len(self.kinds)
            self._learn_all(known, await self._texts(known))

    async def relearn(self) -> None:
        """Reads all kinds again: on an older copy the list may be different."""
        async with self._looking:
            texts = await self._texts(0)
            if texts[: len(self._known)] != self._known:
                Kinds.__init__(self)
                self._known = []
            known = len(self.kinds)
            self._learn_all(known, texts[known:])

    async def _texts(self, first: int) -> list[bytes]:
        found: list[bytes] = await self._server.call("LRANGE", f"{self._base}kinds", first, -1, about="kinds")
        return found

    def _learn_all(self, known: int, texts: list[bytes]) -> None:
        for number, text in enumerate(texts, known + 1):
            lane, _, words = text.partition(b" ")
            function, priority, collection, tenant = json.loads(words)
            if int(lane) not in self.lanes:
                self.learn_lane(int(lane), (function, priority, collection))
            self.learn(number, int(lane), tenant)
        self._known += texts

    async def add(self, kinds: Iterable[Kind]) -> None:
        """Gives numbers to those of these kinds that have none."""
        new = sorted(kind for kind in set(kinds) if kind not in self.numbers)
        if new:
            words = [json.dumps(each) for kind in new for each in ((*kind[:2], kind.collection), tuple(kind))]
            await self._server.run(_ADD, [self._base], 0, *words, about="new kinds")
            await self.look()
            if any(kind not in self.numbers for kind in new):  # the list is a different one
                await self.relearn()
