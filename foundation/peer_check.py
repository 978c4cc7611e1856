"""The check of callers by certificate: THE rule of every listener that other machines reach, by gRPC or HTTP.

TLS verifies a certificate when a connection is made. Here each call over it is checked against the present state: the
clock, the list of revoked ones, the authorities, the fleet; then against the role, and the rights that somebody gave.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..model.errors import InvalidRequest
from ..model.grants import GrantedRights, Grants, rights_of
from ..model.role_calls import refusal
from ..model.token_calls import CALLS, check_call
from .certificates import Identity
from .x509_checks import PeerCertificate, leads_to, out_of_time, parsed, revoked

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

#: The complaint about a certificate that comes from no trusted authority.
ASTRAY = "comes from no authority in ca.crt any longer; make another one with `tailrace auth issue`"
#: Roles all of whose calls are governed by rights, so that a caller with rights may call nothing else.
LIMITED = ("client", "operator")

#: The grants of the servers that the running code starts; empty: callers may do what their roles may.
GRANTS: contextvars.ContextVar[Grants] = contextvars.ContextVar("tailrace-grants", default=MappingProxyType({}))


class ShownCertificate:
    """The certificate that a caller has shown and TLS has verified, `peer`. `chain`: it, and those between it and an
    authority, as they were shown; empty: the server that took the connection checks the authorities."""

    def __init__(self, peer: PeerCertificate, chain: Sequence[Certificate] = ()) -> None:
        self.peer = peer
        self._chain = chain
        self._led: tuple[bytes, bool] = (b"", False)  # to an authority of these, or not: worked out once
        self._over = ""  # why it has ended: it stays ended though the clock is set back

    def ended(self, mine: Identity, now: float) -> str:
        """The reason why it is not taken any longer by a process with these files; empty: it is."""
        if now >= self.peer.until:
            self._over = out_of_time(self.peer, now)
        why = self._over or out_of_time(self.peer, now)
        return why or revoked(self.peer, mine.revoked) or self._astray(mine.authority)

    def _astray(self, authority: bytes) -> str:
        if not self._chain:
            return ""
        known, leads = self._led
        if known is not authority:
            leads = leads_to(self._chain, _authorities(authority))
            self._led = (authority, leads)
        return "" if leads else f"the certificate of {self.peer.caller} {ASTRAY}"


@functools.lru_cache(maxsize=4)
def _authorities(data: bytes) -> list[Certificate]:
    """The authorities of a process, parsed once for all its callers."""
    return parsed(data, "ca.crt")


def admit(shown: ShownCertificate, mine: Identity, grants: Grants, call: str, now: float) -> GrantedRights | None:
    """The rights that somebody gave a caller; None: it may do whatever its role may. `call` is as the rule of roles
    names it (empty: one that all of the fleet may make). Raises InvalidRequest for a call that may not be made."""
    if why := shown.ended(mine, now):
        raise InvalidRequest(why)
    caller = shown.peer.caller
    if mine.caller is not None and caller.fleet != mine.caller.fleet:
        raise InvalidRequest(
            f"{caller} is of another fleet: this is {mine.caller}. Each fleet has certificates of its own"
        )
    if not call:
        return None
    if why := refusal(caller, call):
        raise InvalidRequest(why)
    rights = rights_of(grants, caller)
    if rights is None:
        return None
    granted = GrantedRights(str(caller), rights)
    if caller.role in LIMITED or call in CALLS:
        check_call(granted, call)
    return granted
