"""Metrics of stores, delay service and tailers for scrapers, asked of the gateway at each scrape."""

from __future__ import annotations

from collections.abc import Sequence

from ..foundation import metrics_server
from ..model.metrics import Sample, samples
from ..wire.gateway import GatewayClient


class GatewayMetricsServer(metrics_server.MetricsServer):
    """Serves metrics, as a Part: `tailrace metrics --listen`. While the gateway is away a scrape fails."""

    def __init__(self, listen: str, gateway: str) -> None:
        super().__init__(listen, self._overview)
        self._client = GatewayClient(gateway)

    async def stop(self) -> None:
        """Closes the listener, and the client."""
        await super().stop()
        await self._client.close()

    async def _overview(self) -> Sequence[Sample]:
        return samples(await self._client.overview())
