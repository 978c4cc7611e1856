"""A part with its numbers over HTTP, where its configuration says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from ..foundation.lifecycle import Group, Part
from ..model.metrics import Sample


class Measurable(Part, Protocol):
    """A part that knows its numbers."""

    async def samples(self) -> Sequence[Sample]: ...


class WithMetrics(Group):
    """A Part: first what answers `GET /metrics`, since a port that is taken should be known at once, then the part."""

    def __init__(self, part: Measurable, listen: str) -> None:
        from ..foundation.metrics_server import MetricsServer

        self._part: Any = part
        self._server = MetricsServer(listen, part.samples)
        super().__init__([self._server, part])

    @property
    def address(self) -> str:
        """Where the part listens, if it does."""
        return str(getattr(self._part, "address", ""))

    @property
    def metrics_address(self) -> str:
        """Where its numbers are."""
        return self._server.address

    async def attached(self) -> None:
        """Waits until the part is attached, if it has to be."""
        attached: Callable[[], Awaitable[None]] | None = getattr(self._part, "attached", None)
        if attached is not None:
            await attached()


def measured(part: Measurable, listen: str) -> Part:
    """The part, with its numbers at `listen`; empty: nowhere."""
    return WithMetrics(part, listen) if listen else part
