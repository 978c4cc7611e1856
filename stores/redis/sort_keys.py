"""Names and numbers as bytes in sort order, for members of sorted sets whose scores are all the same.

Lua counts in doubles, which are exact up to 2^53 only, and positions go up to 2^62: so a position is nineteen digits,
compared as text and subtracted in two halves.
"""

from __future__ import annotations

#: Digits of a number: as many as the largest signed 64-bit one has.
DIGITS = 19
#: The end of a name. A zero byte in a name is written as _ZERO, which sorts later.
_END, _ZERO = b"\0\1", b"\0\2"
#: A byte that sorts behind everything that begins with a name.
LAST = b"\xff"

#: For scripts: how much larger one number of nineteen digits is than another, exact where it is below 2^53.
MINUS = """
local function minus(one, other)
  local high = tonumber(string.sub(one, 1, 10)) - tonumber(string.sub(other, 1, 10))
  return high * 1000000000 + tonumber(string.sub(one, 11)) - tonumber(string.sub(other, 11))
end
"""
#: For scripts: whether one text comes before another as bytes; Lua's own order is that of the server's locale.
BEFORE = """
local function before(one, other)
  for place = 1, math.min(#one, #other) do
    local left, right = string.byte(one, place), string.byte(other, place)
    if left ~= right then return left < right end
  end
  return #one < #other
end
"""
#: For scripts: one command for many values, in as many calls as Lua's stack asks for.
EACH = """
local function each(width, values, ...)
  local answer = 0
  for first = 1, #values, width * 500 do
    local part = {...}
    for place = first, math.min(first + width * 500 - 1, #values) do part[#part + 1] = values[place] end
    answer = answer + redis.call(unpack(part))
  end
  return answer
end
"""


def packed(*names: str) -> bytes:
    """Names as one member: members sort as the names do, and no two lists of names have the same member."""
    return b"".join(name.encode().replace(b"\0", _ZERO) + _END for name in names)


def unpacked(member: bytes, count: int) -> tuple[list[str], bytes]:
    """The first `count` names of a member, and the bytes behind them."""
    *names, rest = member.split(_END, count)
    return [name.replace(_ZERO, b"\0").decode() for name in names], rest


def digits(number: int) -> bytes:
    """A number from 0 on as text that sorts in its order."""
    return b"%019d" % number


__all__ = ["BEFORE", "DIGITS", "EACH", "LAST", "MINUS", "digits", "packed", "unpacked"]
