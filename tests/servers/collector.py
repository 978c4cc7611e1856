"""A collector of OpenTelemetry's for tests: OTLP over HTTP, as protobuf, of the protocol's own messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Seen:
    """One span that came. `service` is the process's."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    failed: bool


@dataclass
class Collector:
    """A collector that keeps everything it gets. `status`: its answer; `hold`: while this is clear it answers
    nobody."""

    endpoint: str
    spans: list[Seen] = field(default_factory=list)
    metrics: dict[str, list[Any]] = field(default_factory=dict)
    requests: int = 0
    status: int = 200
    hold: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def of(self, trace_id: str) -> list[Seen]:
        """The spans of one trace, in the order in which they began."""
        return sorted((each for each in self.spans if each.trace_id == trace_id), key=lambda each: each.start)

    def wait(self, there: Any, within: float = 30.0) -> bool:
        """Waits until `there()` is true, looking whenever something comes."""
        with self.changed:
            return self.changed.wait_for(there, within)

    def took(self, path: str, body: bytes) -> None:
        """Records a request."""
        with self.changed:
            self.requests += 1
            if path == "/v1/traces":
                self.spans += _spans(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for scope in resource.scope_metrics:
                        for metric in scope.metrics:
                            self.metrics.setdefault(metric.name, []).append(metric)
            self.changed.notify_all()


def _spans(request: Any) -> list[Seen]:
    found = []
    for resource in request.resource_spans:
        service = _values(resource.resource.attributes).get("service.name", "")
        for span in [span for scope in resource.scope_spans for span in scope.spans]:
            found.append(
                Seen(
                    service,
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _values(span.attributes),
                    [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                    span.status.code == 2,
                )
            )
    return found


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    collector: Collector


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        collector = self.server.collector
        body = self.rfile.read(int(self.headers["Content-Length"]))
        collector.hold.wait()
        if collector.status == 200:
            if self.headers.get("Content-Encoding") == "gzip":
                body = decompress(body)
            collector.took(self.path, body)
        self.send_response(collector.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector of one test's own."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    server.collector.hold.set()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server.collector
    server.collector.hold.set()
    server.shutdown()
    thread.join()
    server.server_close()
