"""Searches of a queue in Redis. There is no index by id: a search without a key reads all tasks in small steps, so that
it blocks the server only for one step, and keeps the newest ones that match."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ....model.search import Search
from ....model.tenant_key import KeyRule, tenant_key
from ...redis.server import RedisServer
from ..ids import id_number, id_text
from ..queue import Page, Status
from ..search_bounds import LOOK, IdSpan, keys_of, kinds_of, span
from .kinds import RedisKinds
from .reports import statuses
from .script import queue_script

#: Most tasks that one step looks at.
STEP = 1000

# ARGV: time, cursor, tasks a step, states (a byte each; none: any), kinds (4 bytes each), 0: any kind.
_STEP = queue_script(
    "no-writes",
    """
local states, any = ARGV[4], ARGV[6] == '0'
local kinds = {}
for _, kind in ipairs(cut(ARGV[5], 4)) do kinds[kind] = true end
local step = call('HSCAN', base .. 'tasks', ARGV[2], 'COUNT', tonumber(ARGV[3]))
local found = {}
for i = 1, #step[2], 2 do
  local task = step[2][i + 1]
  if (states == '' or string.find(states, sub(task, 1, 1), 1, true)) and (any or kinds[sub(task, 7, 10)]) then
    found[#found + 1] = step[2][i]
  end
end
return {step[1], found}
""",
)
# ARGV: time, most ids of each, keys.
_KEYED = queue_script(
    "no-writes",
    """
local found = {}
for i = 3, #ARGV do
  local key = be4(#ARGV[i]) .. ARGV[i]
  local some = call('ZREVRANGEBYLEX', base .. 'keyed', '(' .. key .. '\\255', '[' .. key, 'LIMIT', 0, ARGV[2])
  for _, each in ipairs(some) do found[#found + 1] = sub(each, -8) end
end
return found
""",
)


async def find(server: RedisServer, base: str, kinds: RedisKinds, search: Search, rule: KeyRule = tenant_key) -> Page:
    """Returns a page, as `Queue.find` does. `rule`: the key of a tenant as it is kept."""
    ids = span(search)
    await kinds.look()
    fitting = kinds_of(search, kinds.kinds)
    if fitting == []:
        return Page([])
    if search.key:
        keys = [key.encode() for key in keys_of(search, kinds.kinds, rule)]
        raw = await server.run(_KEYED, [base], -1, LOOK, *keys, about="a search")
        numbers = sorted((number for each in raw if _within(number := int.from_bytes(each, "big"), ids)), reverse=True)
    else:
        numbers = await _scan(server, base, search, ids, fitting)
    found = await statuses(server, base, kinds, [id_text(number) for number in numbers])
    fits = [each for each in found if each is not None and _fits(each, search)][: search.limit]
    if search.key:
        return Page(fits, fits[-1].id if len(fits) == search.limit else "")
    return Page(fits, id_text(numbers[-1]) if len(numbers) == search.limit else "")


def _within(number: int, ids: IdSpan) -> bool:
    return ids.lowest <= number < ids.before


def _fits(status: Status, search: Search) -> bool:
    """Whether an item still matches: it may have changed since it was scanned."""
    kind = status.kind
    return (
        (not search.states or status.state in search.states)
        and search.function in ("", kind.function)
        and search.tenant in ("", kind.tenant)
        and _within(id_number(status.id), span(search))
    )


async def _scan(server: RedisServer, base: str, search: Search, ids: IdSpan, kinds: Sequence[int] | None) -> list[int]:
    """The newest matching ids, at most a page of them."""
    states = bytes(int(state) for state in search.states)
    numbers = b"".join(kind.to_bytes(4, "big") for kind in kinds or ())
    newest: list[int] = []
    cursor = b"0"
    while True:
        cursor, step = await server.run(
            _STEP, [base], -1, cursor, STEP, states, numbers, int(kinds is not None), about="a search"
        )
        there = {number for each in step if _within(number := int.from_bytes(each, "big"), ids)}
        newest = heapq.nlargest(search.limit, there.union(newest))
        if cursor == b"0":
            return newest
