"""Owners of streams, as a client of our own reads them from the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from ...stores.remote import RemoteOwnership
from .looks import Ask
from .path import Owners, Tenure

#: Rows of one question.
PAGE = 500


class SeenOwner(NamedTuple):
    """The holder of a row, and its epoch."""

    epoch: int
    pid: int


@asynccontextmanager
async def owners(store: str) -> AsyncIterator[Ask[SeenOwner]]:
    """Connects to the store at an address and asks for owners. A row that was released tells nothing new: no item of it
    is running."""
    client = RemoteOwnership(store)

    async def ask() -> Iterable[tuple[str, SeenOwner]]:
        found: dict[str, SeenOwner] = {}
        after = ("", "")
        while True:
            rows = await client.list(PAGE, after)
            for row in rows:
                host_pid = row.owner.holder.split(":")
                if len(host_pid) == 3:
                    found[f"{row.source}/{row.partition}"] = SeenOwner(row.owner.epoch, int(host_pid[1]))
            if len(rows) < PAGE:
                return found.items()
            after = rows[-1].source, rows[-1].partition

    try:
        yield ask
    finally:
        await client.close()


def tenures(seen: Iterable[tuple[float, str, SeenOwner]]) -> Owners:
    """The seen owners, in the form for the rules."""
    return Owners(Tenure(at, place, holder.epoch, holder.pid) for at, place, holder in seen)
