"""A server's clock, compared with this host's monotonic one: when it is set forward, no lease ends too early."""

from __future__ import annotations

import logging
import math

from ...foundation.clock import Clock

#: Seconds that a server's clock must move against this host's monotonic one to count as a jump.
JUMP = 1.0

_LOG = logging.getLogger("tailrace.stores")


class ServerClock:
    """The clock of one server. `wait`: the lease of a source, seconds; a holder that lives renews its leases within
    this time."""

    def __init__(self, server: str, wait: float, clock: Clock) -> None:
        self._server = server
        self._wait = wait
        self._clock = clock
        self._ahead: float | None = None  # most seconds that it was ahead of our monotonic clock
        self._no_end_before = -math.inf

    def about(self) -> float:
        """The server's time, µs, as far as is known."""
        return (self._clock.monotonic() + (self._ahead or 0.0)) * 1e6

    @property
    def leases_may_end(self) -> bool:
        """Whether a lease whose time has passed may be ended."""
        return self._clock.monotonic() >= self._no_end_before

    def told(self, moment: int, asked: float) -> None:
        """Notes the server's time (`moment`, µs), which was asked for at `asked` (monotonic). A slow answer is no
        jump."""
        answered = self._clock.monotonic()
        least, most = moment / 1e6 - answered, moment / 1e6 - asked
        if self._ahead is not None and least - self._ahead > JUMP:
            self._no_end_before = answered + self._wait
            _LOG.warning(
                "%s: the clock of the server was set forward: no lease ends for %.0f s", self._server, self._wait
            )
        if self._ahead is None or not least <= self._ahead <= most:
            self._ahead = most
