"""The port for acts of operators: what was done, by whom."""

from __future__ import annotations

from typing import Protocol

from ...model.act import Act


class ActPort(Protocol):
    """Acts of operators, which every gateway of a platform keeps in the same store."""

    async def acts(self, who: str = "", what: str = "", on: str = "", before: int = 0, limit: int = 100) -> list[Act]:
        """The newest acts whose texts contain the given ones, the newest first, at most 1000; `before`: only acts below
        this number. An answer may be shorter than the limit although there are more, since a search is bounded."""
