"""The inventory in PostgreSQL: one narrow row per name and version; positions are dense within a source.

A name may be longer than an index takes, so entries are told apart by a digest of name and version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ...model.errors import InvalidRequest
from ..postgres.arrays import blobs, texts
from ..postgres.schema import PostgresSchema
from .inventory import Entries, InventoryEntry

_OFFER = "SELECT added FROM S.inventory_offer(%s, %s::text[], %s::text[], %s::bytea[]) AS added"
_RAISE = "SELECT floor FROM S.inventory_raise_floor(%s, %s::bigint, %s::bigint) AS floor"


class PostgresInventory:
    """An Inventory in one schema."""

    def __init__(self, schema: PostgresSchema) -> None:
        self._schema = schema

    async def offer(self, source: str, entries: Sequence[InventoryEntry]) -> int:
        if not entries:
            return 0
        new = list(dict.fromkeys(entries))
        digests = [_identity(source, entry) for entry in new]
        rows = await self._schema.write(
            _OFFER,
            (source, texts([each.name for each in new]), texts([each.version for each in new]), blobs(digests)),
            "a listing",
        )
        return int(rows[0][0])

    async def read(self, source: str, position: int, limit: int) -> Entries:
        rows = await self._schema.read(
            "SELECT position, name, version FROM S.inventory WHERE source = %s AND position >= %s"
            " ORDER BY position LIMIT %s",
            (source, position, limit),
            "the inventory",
        )
        return Entries([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    async def end(self, source: str) -> int:
        [(end,)] = await self._schema.read(
            "SELECT coalesce(max(position) + 1, 0) FROM S.inventory WHERE source = %s", (source,), "the inventory"
        )
        return int(end)

    async def forget(self, source: str) -> None:
        await self._schema.write("SELECT 1 FROM S.inventory_forget(%s)", (source,), "the end of an inventory")

    async def floor(self, source: str) -> str:
        rows = await self._schema.read(
            "SELECT name FROM S.inventory_floors WHERE source = %s", (source,), "the inventory"
        )
        return str(rows[0][0]) if rows else ""

    async def raise_floor(self, source: str, overlap: int, below: int) -> str:
        [(floor,)] = await self._schema.write(_RAISE, (source, overlap, below), "the inventory")
        return str(floor)


def _identity(source: str, entry: InventoryEntry) -> bytes:
    """A digest of an entry's name and version. Raises InvalidRequest for characters that a text of PostgreSQL cannot
    hold."""
    try:
        name, version = entry.name.encode(), entry.version.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"source {source!r}: an entry's name or version is not UTF-8 text, near {entry.name[:80]!a}; rename it"
        ) from None
    if b"\0" in name or b"\0" in version:
        raise InvalidRequest(f"source {source!r}: an entry's name has a NUL, near {entry.name[:80]!a}; rename it")
    return hashlib.sha256(len(name).to_bytes(8, "big") + name + version).digest()
