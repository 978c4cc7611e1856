"""A part with its metrics: answered over HTTP where its configuration says so, and sent to a collector where its
environment names one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from ..foundation import otel
from ..foundation.lifecycle import Group, Part
from ..model.metrics import Sample


class Measurable(Part, Protocol):
    """A part that knows its metrics."""

    async def samples(self) -> Sequence[Sample]: ...


class WithMetrics(Group):
    """A Part: first the server that answers `GET /metrics` at `listen` (empty: none), since a port that is taken should
    be known at once, then the part, then the sender."""

    def __init__(self, part: Measurable, listen: str) -> None:
        self._part: Any = part
        self._server: Any = None
        parts: list[Part] = [part]
        if listen:
            from ..foundation.metrics_server import MetricsServer

            self._server = MetricsServer(listen, self.samples)
            parts.insert(0, self._server)
        if (settings := otel.settings()) is not None and otel.wants_metrics():
            from ..foundation.metrics_push import MetricsPush

            parts.append(MetricsPush(settings, self.samples))
        super().__init__(parts)

    async def samples(self) -> list[Sample]:
        """Metrics of the part now, and of its process's telemetry."""
        return [*await self._part.samples(), *otel.samples()]

    @property
    def address(self) -> str:
        """The address at which the part listens, if it does."""
        return str(getattr(self._part, "address", ""))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The addresses at which the parts inside it listen, if there are several."""
        found: Mapping[str, str] = getattr(self._part, "addresses", {})
        return found

    @property
    def metrics_address(self) -> str:
        """The address at which the metrics are; empty: none."""
        return "" if self._server is None else str(self._server.address)

    async def attached(self) -> None:
        """Waits until the part is attached, if it has to be."""
        attached: Callable[[], Awaitable[None]] | None = getattr(self._part, "attached", None)
        if attached is not None:
            await attached()


def measured(part: Measurable, listen: str) -> Part:
    """The part, with its metrics at `listen` (empty: nowhere), and sent where the environment says."""
    return WithMetrics(part, listen) if listen or otel.wants_metrics() else part
