"""Certificates that have ended: a clock that is set back revives none."""

from __future__ import annotations

from typing import Any, cast

from tailrace.foundation.peer_check import ShownCertificate
from tailrace.foundation.x509_checks import PeerCertificate
from tailrace.model.caller import caller_of


class Mine:
    """The facts of a process with certificates that are asked for here."""

    revoked: frozenset[Any] = frozenset()
    authority = b""


def test_a_certificate_that_was_shown_too_late_stays_ended_though_the_clock_is_set_back() -> None:
    caller = caller_of(["tailrace://fleet/worker/w1"])
    shown = ShownCertificate(PeerCertificate(caller, 1000.0, 2000.0))
    mine = cast(Any, Mine())
    # Given one that is good, also once the clock was set right
    assert "is valid from" in shown.ended(mine, 999.0)
    assert shown.ended(mine, 1999.0) == ""
    # When it has ended by the clock, then it stays so
    for now in (2000.0, 1999.0, 999.0):
        assert "expired at" in shown.ended(mine, now)
