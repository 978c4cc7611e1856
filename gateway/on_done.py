"""Callbacks of ends: makes the workload that calls the function or URL in `on_done` of a job or a workload."""

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
from .rules.highest_priority import HighestPriorities
from .rules.job_arguments import argument_for


class OnDone:
    """Makes callbacks to functions, and to URLs where `callbacks` are configured."""

    def __init__(self, config: GatewayConfig, functions: KnownFunctions, highest: HighestPriorities) -> None:
        self._config = config
        self._functions = functions
        self._highest = highest

    def callback(self, on_done: str, rank: int, tenant: str = "") -> Callback:
        """The callback workload for a function's name or an https URL, with this priority or the highest one that the
        function may have. A request is of the `tenant` of what ended, so that it takes that one's places. Raises
        UnknownFunction, and InvalidRequest for a target that cannot be called."""
        if is_url(on_done):
            return self._over_http(on_done, tenant)
        spec = self._functions.check(on_done)
        prefix, suffix = around(argument_for("on_done", "", spec))
        return Callback(Kind(spec.name, max(rank, self._highest.of(spec.name, ""))), prefix, suffix)

    def _over_http(self, url: str, tenant: str) -> Callback:
        config = self._config.callbacks
        if config is None:
            raise InvalidRequest(
                "this gateway sends no callbacks over HTTP: give it `callbacks` with `secrets` in gateway.yaml, or "
                "name a function as on_done"
            )
        check_url(url, config.networks)
        prefix = b'{"url":' + json.dumps(url).encode() + b',"event":'
        return Callback(Kind(CALLBACK, int(DEFAULT_PRIORITY), "", tenant), prefix, b"}")
