"""Refuses to start a node whose own files still have rows of a store that is now configured to be elsewhere."""

from __future__ import annotations

from pathlib import Path

from ..delay_service.records import rung_wait
from ..model.errors import ConfigError
from ..model.parked import due_function
from ..stores.log import sqlite as log
from ..stores.queue.lifecycle import LEASED, WAITING
from ..stores.queue.sqlite import queue
from ..stores.sqlite.file import SqliteFile
from ..stores.state import sqlite as state


async def refuse_what_waits_in(file: Path) -> None:
    """Raises ConfigError when a queue that is not configured any more still has workloads: nobody would run them."""
    former = SqliteFile(file, queue.SCHEMA, name="queue")
    await former.open()
    try:
        store = queue.SqliteQueue(former)
        await store.open()
        found = await store.counts()
    finally:
        await former.close()
    waiting = sum(found[state.label] for state in WAITING | LEASED)
    if waiting:
        raise ConfigError(
            f"{file} still has {waiting} workloads, and the queue is configured to be elsewhere: run the node with the "
            "former `queue` in stores.yaml until they have ended, or move the file away if they are not to run"
        )


async def refuse_what_is_parked_in(file: Path) -> None:
    """Raises ConfigError when a delay service's log that is not configured any more still has items: nobody would run
    them again."""
    former = SqliteFile(file, log.SCHEMA, name="delay")
    await former.open()
    try:
        store = log.SqliteLog(former)
        await store.open()
        counts = store.counts()
    finally:
        await former.close()
    left = {each: n for each, n in counts.items() if n and (rung_wait(each) or due_function(each) is not None)}
    if left:
        told = ", ".join(f"{number} in {stream}" for stream, number in sorted(left.items())[:5])
        raise ConfigError(
            f"{file} still has {sum(left.values())} items that wait for another attempt ({told}), and `delay_log` in "
            "stores.yaml is configured to be elsewhere: leave it as it was until they are done, or move the file away "
            "if they are not to run"
        )


async def refuse_what_rests_in(file: Path) -> None:
    """Raises ConfigError when a state that is not configured any more still has rows, which nobody would find: streams
    would begin anew, and dead letters, gates and schedules be gone."""
    former = SqliteFile(file, state.SCHEMA, name="state")
    await former.open()
    try:
        found = await state.what_rests_in(former)
    finally:
        await former.close()
    if found:
        told = ", ".join(f"{number} {name}" for name, number in found.items())
        raise ConfigError(
            f"{file} still has {told}, and the state is configured to be elsewhere, where they are not known: "
            "leave `state` in stores.yaml as it was, or move the file away if none of it is needed any more"
        )
