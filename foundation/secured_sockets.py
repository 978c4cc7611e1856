"""TLS for asyncio's own servers, with the certificates of this process as they are when somebody connects."""

from __future__ import annotations

import ssl
import threading
from typing import Any

from .certificates import CERTIFICATE, KEY, Certificates


class VerifyingContext(ssl.SSLContext):
    """A context whose connections were verified with the certificates in `authority`."""

    authority: bytes


class ServingContext(ssl.SSLContext):
    """A context for servers that asks for a certificate of the fleet, and speaks TLS 1.2 or newer. Each connection is
    made with the files in force."""

    _found: Certificates
    _lock: threading.Lock
    _number: int
    _inner: VerifyingContext

    def __new__(cls, found: Certificates) -> ServingContext:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made._found, made._lock, made._number = found, threading.Lock(), 0
        made._now()  # bad files are told at once
        return made

    def _now(self) -> VerifyingContext:
        identity = self._found.serving()
        with self._lock:
            if identity.number != self._number:
                try:
                    self._inner = _made(self._found, identity.authority)
                    self._number = identity.number
                except (ssl.SSLError, OSError):
                    if not self._number:
                        raise
                    # the files change just now: the former context serves, and the next connection looks again
            return self._inner

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Wraps a connection of asyncio."""
        return self._now().wrap_bio(*arguments, **options)


def _made(found: Certificates, authority: bytes) -> VerifyingContext:
    made = VerifyingContext(ssl.PROTOCOL_TLS_SERVER)
    made.authority = authority
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=authority.decode("ascii", errors="ignore"))
    made.load_cert_chain(found.folder / CERTIFICATE, found.folder / KEY)
    return made
