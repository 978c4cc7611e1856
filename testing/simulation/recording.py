"""Recordings of the messages to and from tailers, so that two versions of them can be compared over many worlds.

Kept are not the messages but, of each kind of message, how many there were and a hash of them all, and how each item's
runs ended. Two versions may be alike in three ways. `same`: each message was the same, in the same order among its
kind. `alike`: there were as many of each kind. `fates`: each item's runs ended the same way. Who awaits once less has
the rest of a world's chances fall otherwise, so that a change which means nothing may leave only the last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from .journal import Journal

#: Hosts with tailers in them.
TAILERS = ("tailer", "node")
#: Fields that only say how a stream of messages goes on.
_LINKS = ("link",)


class WorldRecord(msgspec.Struct):
    """One world. `said`: kind of message → how many, and a hash of them; `fates`: item → how its runs ended."""

    seed: int
    said: dict[str, tuple[int, str]]
    fates: dict[str, list[str]]


class WorldRecording:
    """Listens to the network of one world."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[int, Any]] = {}

    def heard(self, host: str, how: str, kind: str, data: bytes) -> None:
        """Records a message that a host sends (`does`) or gets (`is told`)."""
        if not host.startswith(TAILERS):
            return
        key = f"{host} {how} {kind}"
        count, digest = self._said.get(key) or (0, hashlib.blake2b(digest_size=8))
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
        self._said[key] = (count + 1, digest)

    def record(self, seed: int, journal: Journal) -> WorldRecord:
        """Makes the record of the world."""
        said = {key: (count, digest.hexdigest()) for key, (count, digest) in sorted(self._said.items())}
        fates = {id: [run.how for run in story.executions] for id, story in sorted(journal.stories.items())}
        return WorldRecord(seed, said, fates)


def kind_of(message: Any) -> str:
    """The kind of a wire message: the store's method that is called, or the fields that are set."""
    name = type(message).__name__
    if name == "StoreCall":
        return f"{message.store}.{message.method}"
    fields = (field.name for field, _ in message.ListFields())
    return f"{name}({', '.join(field for field in fields if field not in _LINKS)})"


def difference(before: WorldRecord, after: WorldRecord) -> tuple[str, str]:
    """Compares two records of one world: how they are alike (`same`, `alike`, `fates` or `differ`), and where they
    first differ."""
    if before.said == after.said and before.fates == after.fates:
        return "same", ""
    where = _first(before.said, after.said)
    if before.fates != after.fates:
        return "differ", _first_fate(before.fates, after.fates)
    counts = {key: count for key, (count, _) in before.said.items()}
    return ("alike" if counts == {key: count for key, (count, _) in after.said.items()} else "fates"), where


def _first(before: Mapping[str, tuple[int, str]], after: Mapping[str, tuple[int, str]]) -> str:
    for key in sorted({*before, *after}):
        was, now = before.get(key, (0, "")), after.get(key, (0, ""))
        if was != now:
            return f"{key}: {was[0]} messages, {'others' if was[0] == now[0] else now[0]} now"
    return ""


def _first_fate(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> str:
    for id in sorted({*before, *after}):
        was, now = before.get(id, []), after.get(id, [])
        if was != now:
            return f"{id}: {', '.join(was) or 'it did not run'}; now: {', '.join(now) or 'it did not run'}"
    return ""
