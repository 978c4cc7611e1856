"""Issues the certificates of a small fleet (the parts of one platform): an authority in a folder, and below it a folder
for each part.

A part's folder is carried to the part's host, where `certificates.py` reads it. `ca.key` stays where it was made:
anybody who has it can make a certificate for any part. A certificate with hosts may serve there, one without can only
call.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..model.caller import Caller, checked
from ..model.errors import ConfigError, Conflict, InvalidRequest, TailraceError
from ..model.plain_text import plain
from .atomic_files import NewFile, locked, put, put_once, told
from .certificates import AUTHORITY, CERTIFICATE, KEY, REVOKED
from .issued import Issued, issued, note
from .x509_checks import PeerCertificate, check_chain, check_key, out_of_time, parsed, peer_of, revocations, revoked

AUTHORITY_KEY = "ca.key"
#: Days of an authority, and of a certificate: as long as public ones may still be, so that renewing them is a habit.
AUTHORITY_DAYS, DAYS, LONGEST_DAYS = 3650, 90, 825
#: So much earlier than now they are valid, since hosts' clocks differ.
EARLIER = datetime.timedelta(minutes=10)
#: Names that every serving certificate has too, for callers of its own host.
HERE = ("localhost", "127.0.0.1", "::1")
#: Names of hosts in one certificate, and characters of one.
MOST_HOSTS, LONGEST_HOST = 100, 253
_HOST = re.compile(
    r"(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)


class Authority:
    """The authority in a folder, which issues certificates. `now` are wall clock seconds."""

    def __init__(
        self, folder: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, fleet: str
    ) -> None:
        self.folder = folder
        self.fleet = fleet
        self._certificate = certificate
        self._key = key

    @classmethod
    def made(cls, folder: Path, fleet: str, now: float) -> Authority:
        """Makes a new one, in a folder that has none. A folder with the key alone is of an `init` that died: it is
        completed. Raises Conflict."""
        fleet = checked(Caller(fleet or f"fleet-{secrets.token_hex(4)}", "node", "ca")).fleet
        if (folder / AUTHORITY).exists():
            raise Conflict(has_one(folder))
        with told(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        put_once(folder, AUTHORITY_KEY, NewFile(_key_pem(ec.generate_private_key(ec.SECP256R1())), 0o600))
        with locked(folder / AUTHORITY_KEY):
            if (folder / AUTHORITY).exists():  # of another `init` that began just before
                raise Conflict(has_one(folder))
            key = _signing((folder / AUTHORITY_KEY).read_bytes(), folder / AUTHORITY_KEY)
            put(folder, {AUTHORITY: NewFile(_pem(_self_signed(key, fleet, now)), 0o644)})
        return cls.of(folder)

    @classmethod
    def of(cls, folder: Path) -> Authority:
        """Loads the one that was made in a folder. Raises ConfigError."""
        at, path = folder / AUTHORITY_KEY, folder / AUTHORITY
        try:
            data, text = at.read_bytes(), path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}; `tailrace auth init` makes an authority, and {AUTHORITY_KEY} "
                "stays where that was"
            ) from None
        [certificate, *_] = parsed(text, str(path))
        check_key(certificate, data, str(path), str(at))
        fleets = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if len(fleets) != 1:
            raise ConfigError(_not_ours(path))
        return cls(folder, certificate, _signing(data, path), str(fleets[0].value))

    def issue(self, role: str, name: str, hosts: Sequence[str], now: float, days: int = DAYS, at: str = "") -> Path:
        """Issues a certificate of a role and a name, with a key of its own, into the folder `at` (default: ROLE-NAME)
        below the authority's, replacing one that is there. With `hosts` it may serve there. Returns the folder."""
        caller = checked(Caller(self.fleet, role, name))
        check_bounds(hosts, days)
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(caller.uri)]
        names += [_host(each) for each in dict.fromkeys((*HERE, *hosts) if hosts else ())]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(caller), self._certificate.subject, key.public_key(), now, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = _signed(builder.add_extension(issuer, critical=False), self._key)
        with locked(self.folder / AUTHORITY_KEY):
            return self._put(at or f"{role}-{name}", certificate, _key_pem(key), now)

    def _put(self, at: str, certificate: x509.Certificate, key: bytes, now: float) -> Path:
        """Notes a certificate, and puts it with its key into its folder."""
        folder = self.folder / at
        note(self.folder, [*self.issued(), line_of(certificate, at)], now)
        files = {KEY: NewFile(key, 0o600), CERTIFICATE: NewFile(_pem(certificate), 0o644)}
        files[AUTHORITY] = NewFile(self._trusted(folder), 0o644)
        if (self.folder / REVOKED).exists():
            files[REVOKED] = NewFile((self.folder / REVOKED).read_bytes(), 0o644)
        folder.mkdir(mode=0o700, exist_ok=True)
        put(folder, files)
        return folder

    def _trusted(self, folder: Path) -> bytes:
        """The authorities that a folder is to trust: those of this one's folder, and others that it has during a
        change."""
        ours = (self.folder / AUTHORITY).read_bytes()
        with contextlib.suppress(OSError, ConfigError):
            theirs = (folder / AUTHORITY).read_bytes()
            known = parsed(theirs, "")
            if all(each in known for each in parsed(ours, "")):
                return theirs
        return ours

    def issued(self) -> list[Issued]:
        """Certificates that it issued, in that order; also those from before there was a list, if they lie in a folder
        here. Raises ConfigError."""
        found = issued(self.folder)
        known = {each.serial for each in found}
        lying = [self.lying(path.parent.name) for path in sorted(self.folder.glob(f"*/{CERTIFICATE}"))]
        return [each for each in lying if each is not None and each.serial not in known] + found

    def lying(self, at: str) -> Issued | None:
        """The certificate in a folder below; None: there is none of this authority that can be read."""
        path = self.folder / at / CERTIFICATE
        try:
            [certificate, *_] = parsed(path.read_bytes(), str(path))
            check_chain([certificate], [self._certificate], str(path), str(self.folder / AUTHORITY))
            return line_of(certificate, at)
        except (OSError, ConfigError, InvalidRequest):
            return None

    def revoke(self, at: str, now: float) -> list[Issued]:
        """Revokes every valid certificate of the caller to whom the folder `at`, below the authority's, belongs or
        belonged: also those issued before the one that lies there. Raises ConfigError."""
        with locked(self.folder / AUTHORITY_KEY):
            known = self.issued()
            callers = {each.caller for each in known if each.folder == at}
            if (here := self.lying(checked_folder(at))) is not None:
                callers = {here.caller}
            if not callers:
                there = ", ".join(sorted({each.folder for each in known})) or "none"
                raise ConfigError(
                    f"{self.folder / at / CERTIFICATE}: no certificate of this authority; there are {there}"
                )
            found = [each for each in known if each.caller in callers and each.until > now]
            if not found:
                raise ConfigError(f"{self.folder / at}: every certificate of {min(callers)} has ended by itself")
            self._revoke([each.serial for each in found], now)
            return found

    def revoke_serial(self, serial: int, now: float) -> list[Issued]:
        """Revokes the certificate of a serial number, also where the list of issued ones is broken. Returns the entries
        of that certificate; none, if it was issued before there was a list."""
        with locked(self.folder / AUTHORITY_KEY):
            self._revoke([serial], now)
            with contextlib.suppress(ConfigError):
                return [each for each in self.issued() if each.serial == serial]
            return []

    def _revoke(self, serials: Iterable[int], now: float) -> None:
        """Adds serial numbers to the list of revoked certificates, and puts that list into every folder."""
        when = datetime.datetime.fromtimestamp(now, datetime.UTC)
        entries = {entry.serial_number: entry for entry in self._revoked()}
        for serial in serials:
            one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(when).build()
            entries.setdefault(serial, one)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._certificate.subject).last_update(when)
        builder = builder.next_update(when + datetime.timedelta(days=AUTHORITY_DAYS))
        for entry in entries.values():
            builder = builder.add_revoked_certificate(entry)
        text = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        for folder in (self.folder, *(each.parent for each in self.folder.glob(f"*/{CERTIFICATE}"))):
            put(folder, {REVOKED: NewFile(text, 0o644)})

    def revoked(self) -> frozenset[int]:
        """Serial numbers of revoked certificates. Raises ConfigError."""
        return frozenset(entry.serial_number for entry in self._revoked())

    def _revoked(self) -> list[x509.RevokedCertificate]:
        try:
            data = (self.folder / REVOKED).read_bytes()
        except FileNotFoundError:
            return []
        revocations(data, [self._certificate], str(self.folder / REVOKED))
        return list(x509.load_pem_x509_crl(data))


def line_of(certificate: x509.Certificate, at: str) -> Issued:
    """The list's entry for a certificate in a folder. Raises InvalidRequest."""
    peer = peer_of(certificate)
    return Issued(peer.serial, peer.caller, peer.since, peer.until, at, hosts_of(certificate))


def hosts_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Hosts where a certificate may serve."""
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress))


def checked_folder(at: str) -> str:
    """Returns `at` if it is the name of a folder. Raises InvalidRequest."""
    if not at or at in (".", "..") or "/" in at or "\0" in at:
        raise InvalidRequest(
            f"{plain(at, LONGEST_HOST)!r} is no folder of a certificate: expected its name in DIR, as ROLE-NAME"
        )
    return at


def has_one(folder: Path) -> str:
    """The message that a folder has an authority already."""
    return (
        f"{folder} has an authority already: `tailrace auth issue` makes more certificates of it, `tailrace auth "
        "renew` other ones in their place; a new fleet needs another folder"
    )


def _signing(data: bytes, where: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError):
        raise ConfigError(f"{where}: expected a private key in PEM without a passphrase; nothing was made") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(_not_ours(where))
    return key


def _not_ours(path: Path) -> str:
    return f"{path}: not an authority of `tailrace auth init`; issue certificates with the program that made it"


def _self_signed(key: ec.EllipticCurvePrivateKey, fleet: str, now: float) -> x509.Certificate:
    names = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, fleet), x509.NameAttribute(NameOID.COMMON_NAME, "tailrace")]
    )
    builder = _builder(names, names, key.public_key(), now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _signed(builder, key)


class Shown(NamedTuple):
    """A certificate in a file: its caller, the hosts where it may serve, and the fault that it has (empty: none)."""

    path: Path
    peer: PeerCertificate | None
    hosts: list[str]
    wrong: str


def shown(folder: Path, now: float) -> list[Shown]:
    """The certificates in a folder and in those below it."""
    return [_shown(path, now) for path in sorted({*folder.glob(CERTIFICATE), *folder.glob(f"*/{CERTIFICATE}")})]


def _shown(path: Path, now: float) -> Shown:
    peer, hosts = None, []
    try:
        [certificate, *_] = parsed(path.read_bytes(), str(path))
        peer = peer_of(certificate)
        hosts = [*hosts_of(certificate)]
        return Shown(path, peer, hosts, out_of_time(peer, now) or _revoked_there(path, peer))
    except (TailraceError, OSError) as error:
        return Shown(path, peer, hosts, str(error))


def _revoked_there(path: Path, peer: PeerCertificate) -> str:
    """The message that the list beside a certificate, or the one above it, has revoked it; empty: neither has."""
    for folder in (path.parent, path.parent.parent):
        at, authority = folder / REVOKED, folder / AUTHORITY
        if at.exists() and authority.exists():
            serials = revocations(at.read_bytes(), parsed(authority.read_bytes(), str(authority)), str(at))
            if why := revoked(peer, serials):
                return why
    return ""


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, days: int
) -> x509.CertificateBuilder:
    begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - EARLIER)
        .not_valid_after(begin + datetime.timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(caller: Caller) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, caller.fleet),
            x509.NameAttribute(NameOID.COMMON_NAME, caller.name),
        ]
    )


def check_bounds(hosts: Sequence[str], days: int) -> None:
    """Raises InvalidRequest for hosts or days that no certificate may have."""
    if not 1 <= days <= LONGEST_DAYS:
        raise InvalidRequest(f"--days is {days}: expected 1 to {LONGEST_DAYS}")
    if len(hosts) > MOST_HOSTS:
        raise InvalidRequest(f"{len(hosts)} hosts in one certificate: at most {MOST_HOSTS}")
    for each in hosts:
        _host(each)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    if len(text) > LONGEST_HOST or not _HOST.fullmatch(text):
        raise InvalidRequest(
            f"--host {text[:LONGEST_HOST]!r} is no host: expected a name or an address, such as node1.example.org or "
            "10.0.0.1, without a port"
        )
    return x509.DNSName(text.lower())


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *form)
