"""The delay service's due items of one function: an ordinary log, whose records say themselves what they are.

What the checkpoint has passed is forgotten, so a due stream holds only what waits.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ...sdk.source import SourceKind
from ..registry import Environment
from .log import LogSource

PREFIX = "due."


class DueOptions(BaseModel):
    """`function` names the function whose due items are read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: str = Field(min_length=1)


class DueSource(LogSource):
    """A log source that trims behind the checkpoint: what is gone was done."""

    keeps = False

    async def settled_below(self, partition: str, position: int) -> None:
        """Forgets the records below `position`."""
        if position:
            await self._log.trim(self._stream, int(partition), position)


def build(options: DueOptions, environment: Environment) -> DueSource:
    """The source over one function's due stream."""
    return DueSource(environment.due_log, PREFIX + options.function)


KIND = SourceKind(
    "due", "stream", DueOptions, build, DueSource.capabilities, description="items of the delay service that are due"
)
