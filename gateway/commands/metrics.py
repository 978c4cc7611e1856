"""The command `tailrace metrics`."""

from __future__ import annotations

from ...foundation import terminal
from ...model.exposition import prometheus_text
from ...model.metrics import samples
from ...sdk import found_gateway


def show_metrics(gateway: str | None, as_json: bool) -> None:
    """Prints the present metrics of the platform."""
    found = samples(found_gateway.ask(gateway, lambda client: client.overview()))
    if as_json:
        rows = [{"name": metric.name, "labels": dict(labels), "value": value} for metric, labels, value, _ in found]
        terminal.show_json(rows)
    else:
        terminal.write(prometheus_text(found).rstrip("\n"))
