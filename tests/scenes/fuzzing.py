"""Cases for fuzzing listeners: messages of a protobuf class with values at the edges, and bytes that are nearly one."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

NUMBERS = (0, 1, 2, 7, 255, 1 << 16, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
FLOATS = (0.0, -1.0, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"), 5.0)
TEXTS = ("", "add", "f" * 300, "é", "\0", "../..", "a b", "x" * 5_000, "%s", "0" * 16, "ffffffffffffffff", "1e999")
_SIGNED = {FieldDescriptor.CPPTYPE_INT32: 31, FieldDescriptor.CPPTYPE_INT64: 63}
_UNSIGNED = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}


class Fuzz:
    """A source of cases; the same `seed` gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, among: Sequence[Any]) -> Any:
        """One of these."""
        return self._random.choice(among)

    def message(self, kind: type[Message], depth: int = 0) -> Message:
        """A message with some of its fields, each of its own type."""
        made = kind()
        for field in made.DESCRIPTOR.fields:
            if depth > 4 or self._random.random() < 0.3:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                target = getattr(made, field.name)
                for _ in range(self._random.choice((0, 1, 3))):
                    if field.message_type.fields_by_name["value"].message_type is None:
                        target[self._value(field.message_type.fields_by_name["key"])] = self._value(
                            field.message_type.fields_by_name["value"]
                        )
            elif field.is_repeated:
                for _ in range(self._random.choice((0, 1, 2, 5))):
                    if field.message_type is not None:
                        part = getattr(made, field.name).add()
                        part.CopyFrom(self.message(type(part), depth + 1))
                    else:
                        getattr(made, field.name).append(self._value(field))
            elif field.message_type is not None:
                part = getattr(made, field.name)
                part.CopyFrom(self.message(type(part), depth + 1))
            else:
                setattr(made, field.name, self._value(field))
        return made

    def _value(self, field: Any) -> Any:  # noqa: PLR0911 - one return per type
        kind, pick = field.cpp_type, self._random.choice
        if kind in _SIGNED:
            limit = 1 << _SIGNED[kind]
            return max(-limit, min(limit - 1, pick(NUMBERS) * pick((1, 1, -1))))
        if kind in _UNSIGNED:
            return min((1 << _UNSIGNED[kind]) - 1, pick(NUMBERS))
        if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
            return pick(FLOATS)
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return pick((True, False))
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            return 0
        if field.type == FieldDescriptor.TYPE_BYTES:
            return pick((b"", b"{}", b"null", b'{"a": 1}', self._random.randbytes(pick((1, 9, 300)))))
        return pick(TEXTS)

    def broken(self, data: bytes) -> bytes:
        """Nearly these bytes: cut, changed, doubled, or with something else in them."""
        made = bytearray(data)
        for _ in range(self._random.choice((1, 1, 2, 8))):
            at = self._random.randrange(len(made) + 1)
            match self._random.randrange(6):
                case 0 if made:
                    made[at % len(made)] ^= 1 << self._random.randrange(8)
                case 1:
                    del made[at:]
                case 2:
                    made[at:at] = self._random.randbytes(self._random.choice((1, 4, 40)))
                case 3:
                    made[at:at] = made[: self._random.randrange(len(made) + 1)]
                case 4:
                    made[at:at] = struct.pack(">I", self._random.choice((0, 1, 1 << 20, (1 << 32) - 1)))
                case _:
                    del made[at : at + self._random.randrange(9)]
        return bytes(made[:200_000])

    def case(self, kind: type[Message]) -> bytes:
        """A message as bytes: right by its types in half of the cases, else nearly."""
        data = self.message(kind).SerializeToString()
        return data if self._random.random() < 0.5 else self.broken(data)
