"""Callbacks of ends: what `on_done` of a job or a workload names becomes the workload that tells it."""

from __future__ import annotations

import json

from ..model.errors import InvalidRequest
from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.jobs.rules.callback import CALLBACK
from ..stores.jobs.rules.feeding import around
from ..stores.queue.intake import Callback
from .config import GatewayConfig
from .known_functions import KnownFunctions
from .rules.callback import check_url, is_url
from .rules.highest import HighestPriorities
from .rules.job_arguments import argument_for


class OnDone:
    """The functions and addresses that a gateway can tell ends to; addresses only where callbacks are configured."""

    def __init__(self, config: GatewayConfig, functions: KnownFunctions, highest: HighestPriorities) -> None:
        self._config = config
        self._functions = functions
        self._highest = highest

    def callback(self, on_done: str, rank: int) -> Callback:
        """The workload for a function's name or an https address; of this priority, as far as the function may have
        it. Raises UnknownFunction, and InvalidRequest for what cannot be told."""
        if is_url(on_done):
            return self._over_http(on_done)
        spec = self._functions.check(on_done)
        prefix, suffix = around(argument_for("on_done", "", spec))
        return Callback(Kind(spec.name, max(rank, self._highest.of(spec.name, ""))), prefix, suffix)

    def _over_http(self, url: str) -> Callback:
        config = self._config.callbacks
        if config is None:
            raise InvalidRequest(
                "this gateway sends no callbacks over HTTP: give it `callbacks` with `secrets` in gateway.yaml, or "
                "name a function as on_done"
            )
        check_url(url, config.networks)
        prefix = b'{"url":' + json.dumps(url).encode() + b',"event":'
        return Callback(Kind(CALLBACK, int(DEFAULT_PRIORITY)), prefix, b"}")
