"""Proxies of the environment (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`): what stays on this machine never
goes to one, whatever the environment says; clients of other machines follow it."""

from __future__ import annotations

import os
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ..model.address import Address

#: The hosts that are this machine, for a client that takes a list.
HERE = "localhost,127.0.0.0/8,::1"


def stays_here(url: str) -> bool:
    """Whether a URL leads to this machine."""
    return Address(urlsplit(url).hostname or "", 0).loopback


def proxy_for(url: str) -> str:
    """The proxy that the environment names for a URL; empty: none."""
    parts = urlsplit(url)
    if stays_here(url) or urllib.request.proxy_bypass(parts.netloc):
        return ""
    named = urllib.request.getproxies()
    return named.get(parts.scheme) or named.get("all") or ""


def opened(url: str, timeout: float) -> Any:
    """The answer to a GET of a URL that begins with http. Raises OSError."""
    handlers = [urllib.request.ProxyHandler({})] if stays_here(url) else []
    return urllib.request.build_opener(*handlers).open(url, timeout=timeout)


def exporting(signal: str) -> dict[str, Any]:
    """Arguments of OpenTelemetry's exporter of a signal, TRACES or METRICS: its session, where the usual one would ask
    a proxy though the endpoint that the environment names is on this machine."""
    named = (os.environ.get(f"OTEL_EXPORTER_OTLP_{between}ENDPOINT", "") for between in (f"{signal}_", ""))
    if not stays_here(next(filter(None, named), "")):
        return {}
    import requests  # which the exporter brings

    session = requests.Session()
    session.trust_env = False
    return {"session": session}
