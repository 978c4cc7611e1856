"""Watches this process' certificates: tells operators in time of files that cannot be used, and of an end that comes
near."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..foundation.certificates import Certificates, certificates
from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.lifecycle import OneDuty
from ..foundation.x509_checks import moment
from ..model.units import duration_text

#: Seconds between looks. A call or a listener looks too.
LOOK = 5.0
#: A certificate of which less than this share is left should have been renewed: what renews by itself does at a third.
LEFT = 0.2

_LOG = logging.getLogger("tailrace.tls")


class CertificateWatch(OneDuty):
    """The watch over certificates: a Part. Without certificates there is nothing to look after."""

    def __init__(self, found: Callable[[], Certificates | None] = certificates, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__("certificates")
        self._found = found
        self._clock = clock

    async def work(self) -> None:
        if (found := self._found()) is None:
            return
        while True:
            identity, now = found.now(), self._clock.monotonic()
            self._tell("taking changed files", found.trouble, now)
            left = identity.until - self._clock.wall()
            near = identity.caller is not None and left < LEFT * (identity.until - identity.since)
            why = f"the certificate of {identity.caller} in {found.folder} ends at {moment(identity.until)}"
            after = f"in {duration_text(max(0, round(left)))}"
            self._tell("renewing", f"{why}, {after}: make another one (`tailrace auth renew`)" if near else "", now)
            await asyncio.sleep(LOOK)

    def _tell(self, duty: str, why: str, now: float) -> None:
        if not why:
            self.duties.well(duty)
        elif self.duties.ails(duty, why, now):
            _LOG.warning("%s", why)
