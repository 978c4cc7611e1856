"""The server's clock, beside this host's monotonic one: when it is set forward, no lease ends before its time."""

from __future__ import annotations

import logging
import math

from ...foundation.clock import Clock

#: A server's clock that moved by so many seconds against this host's monotonic one jumped.
JUMP = 1.0

_LOG = logging.getLogger("tailrace.stores")


class ServerClock:
    """The clock of one server. `wait` is the lease of a source, seconds: who holds something renews it meanwhile."""

    def __init__(self, server: str, wait: float, clock: Clock) -> None:
        self._server = server
        self._wait = wait
        self._clock = clock
        self._ahead: float | None = None  # seconds that it was ahead of our monotonic clock, at most
        self._no_end_before = -math.inf

    def about(self) -> float:
        """The server's time, µs, as far as we know."""
        return (self._clock.monotonic() + (self._ahead or 0.0)) * 1e6

    @property
    def leases_may_end(self) -> bool:
        """Whether a lease whose time is past is over."""
        return self._clock.monotonic() >= self._no_end_before

    def told(self, moment: int, asked: float) -> None:
        """Notes that the server said that it is so late (µs), some time after we asked (monotonic). A slow answer is no
        jump."""
        answered = self._clock.monotonic()
        least, most = moment / 1e6 - answered, moment / 1e6 - asked
        if self._ahead is not None and least - self._ahead > JUMP:
            self._no_end_before = answered + self._wait
            _LOG.warning("%s: its clock was set forward: no lease is ended for %.0f s", self._server, self._wait)
        if self._ahead is None or not least <= self._ahead <= most:
            self._ahead = most
