"""Certificates of this process, for TLS beyond its machine: a folder with `tls.crt`, `tls.key` and `ca.crt`, and
`crl.pem` where some were revoked.

These are the names that cert-manager writes; a folder of `tailrace auth init` has them, and files of step-ca are named
so. Files that change are in force for the next connection, without a restart. If the new files cannot be used, the
former ones stay in force, and a log line says so. A program that has a token and no certificate needs `ca.crt` alone.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..model.caller import Caller
from ..model.errors import ConfigError
from .clock import SYSTEM_CLOCK, Clock
from .x509_checks import Serial, check_chain, check_key, key_of, lists_of, parsed, usable

#: The environment variable that names the folder.
VARIABLE = "TAILRACE_TLS"
CERTIFICATE, KEY, AUTHORITY, REVOKED = "tls.crt", "tls.key", "ca.crt", "crl.pem"
#: The most bytes of a file that are read: a chain has some thousand.
FILE_BYTES = 1 << 20
#: Seconds between looks at the files; files that are broken for two of them are reported.
LOOK = 0.5

_LOG = logging.getLogger("tailrace.tls")
_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """The files as they were read and found good. `caller` and `until` (wall clock seconds) are the certificate's; a
    process without one has neither. `number` rises with each reading; `revoked` are the certificates in lists of
    revoked ones, and `listing` the keys of the authorities that made those lists."""

    number: int
    authority: bytes
    certificate: bytes = b""
    key: bytes = b""
    caller: Caller | None = None
    since: float = 0.0
    until: float = 0.0
    revoked: frozenset[Serial] = frozenset()
    listing: frozenset[bytes] = frozenset()


class Certificates:
    """The files in one folder. Safe from any thread."""

    def __init__(self, folder: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self.folder = folder
        self.trouble = ""  # why the files as they are now are not in force; empty: they are
        self._clock = clock
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._stamp: _Stamp = ()
        self._broken: _Stamp = ()
        self._look_at = 0.0

    def now(self) -> Identity:
        """The files in force. Raises ConfigError while none were good yet."""
        with self._lock:
            now = self._clock.monotonic()
            if self._identity is None:
                self._stamp = self._stamped()
                self._identity = self._read(1)
            elif now >= self._look_at:
                self._look(self._identity)
            else:
                return self._identity
            self._look_at = now + LOOK
            return self._identity

    def serving(self) -> Identity:
        """The files that a listener shows. Raises ConfigError where there is only an authority."""
        found = self.now()
        if found.caller is None:
            raise ConfigError(f"{self.folder / CERTIFICATE}: no such file; a part that listens needs a certificate")
        return found

    def _look(self, former: Identity) -> None:
        """Takes changed files. Two files that belong together change one after the other, so a fault is reported when
        it is seen the second time."""
        stamp = self._stamped()
        if stamp == self._stamp:
            self._broken, self.trouble = (), ""
            return
        try:
            self._identity = self._read(former.number + 1, former)
        except ConfigError as error:
            if stamp == self._broken and not self.trouble:
                self.trouble = f"{error}. The former certificates stay in force"
                _LOG.error("%s", self.trouble)
            self._broken = stamp
            return
        self._stamp, self._broken, self.trouble = stamp, (), ""
        _LOG.warning("%s: changed certificates are in force: %s", self.folder, self._identity.caller)

    def _stamped(self) -> _Stamp:
        return tuple(_stamp(self.folder / name) for name in (CERTIFICATE, KEY, AUTHORITY, REVOKED))

    def _read(self, number: int, former: Identity | None = None) -> Identity:
        """Reads and checks the files. A list of revoked certificates, or a certificate, that was there before and is
        gone is a mistake: callers that it kept out would get in."""
        if not self.folder.is_dir():
            raise ConfigError(
                f"{self.folder}: no such folder of certificates; expected one with {CERTIFICATE}, {KEY} and "
                f"{AUTHORITY}, as `tailrace auth init` makes"
            )
        path, at, authority_at = (self.folder / name for name in (CERTIFICATE, KEY, AUTHORITY))
        authority = _bytes(authority_at)
        authorities = parsed(authority, str(authority_at))
        list_at = self.folder / REVOKED
        lists = lists_of(_bytes(list_at), authorities, str(list_at)) if list_at.exists() else {}
        if former is not None and (former.listing & set(map(key_of, authorities))) - set(lists):
            raise ConfigError(
                f"{list_at}: an authority in {AUTHORITY} had a list of revoked certificates here, which is gone; put "
                "the list back, one behind the other where there are several. A restart does without a list"
            )
        gone = frozenset[Serial]().union(*lists.values()), frozenset(lists)
        if not path.exists() and not at.exists():
            if former is not None and former.caller is not None:
                raise ConfigError(f"{path}: gone, and {KEY} too; put both of them there together")
            return Identity(number, authority, revoked=gone[0], listing=gone[1])
        certificate, key = _bytes(path), _bytes(at)
        chain = parsed(certificate, str(path))
        check_key(chain[0], key, str(path), str(at))
        check_chain(chain, authorities, str(path), str(authority_at))
        found = usable(chain[0], str(path), self._clock.wall())
        return Identity(number, authority, certificate, key, found.caller, found.since, found.until, *gone)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; expected PEM, as `tailrace auth init` makes") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(found) > FILE_BYTES:
        raise ConfigError(f"{path}: larger than {FILE_BYTES} bytes; a certificate is never that large")
    return found


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def certificates_in(folder: Path) -> Certificates:
    """The certificates in a folder."""
    return _in(str(folder.expanduser().absolute()))


@functools.lru_cache(maxsize=32)
def _in(folder: str) -> Certificates:
    """The certificates of a folder, once for all that a process dials and serves."""
    return Certificates(Path(folder))


def certificates(environment: Mapping[str, str] | None = None) -> Certificates | None:
    """The certificates of this process, whose folder TAILRACE_TLS names (`tls` in access.yaml sets it); None: it has
    none."""
    folder = (os.environ if environment is None else environment).get(VARIABLE)
    return _in(folder) if folder else None


def own_fleet() -> str:
    """The fleet of this process; empty where it has no certificate of its own. Raises ConfigError while that cannot be
    used."""
    found = certificates()
    caller = None if found is None else found.now().caller
    return "" if caller is None else caller.fleet


os.register_at_fork(after_in_child=_in.cache_clear)  # another thread of the parent may have held a lock
