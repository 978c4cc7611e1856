"""Issues the certificates of a small fleet: an authority in a folder, and beside it a folder for each part.

A part's folder is what `certificates.py` reads, and is carried to the part's host. `ca.key` stays where it was made:
who has it can make any part of the fleet. A certificate with hosts may serve there, one without can only call.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..model.caller import Caller, checked
from ..model.errors import ConfigError, Conflict, InvalidRequest, TailraceError
from .certificates import AUTHORITY, CERTIFICATE, KEY, REVOKED
from .x509_checks import PeerCertificate, check_key, out_of_time, parsed, peer_of, revocations, revoked

AUTHORITY_KEY = "ca.key"
#: Days of an authority, and of a certificate: as long as public ones may still be, so that renewing them is a habit.
AUTHORITY_DAYS, DAYS, LONGEST_DAYS = 3650, 90, 825
#: So much earlier than now they are valid, since hosts' clocks differ.
EARLIER = datetime.timedelta(minutes=10)
#: What every certificate that serves is also called, for callers of its own host.
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
        """A new one, in a folder that has none. Raises Conflict."""
        fleet = checked(Caller(fleet or f"fleet-{secrets.token_hex(4)}", "node", "ca")).fleet
        if (folder / AUTHORITY_KEY).exists() or (folder / AUTHORITY).exists():
            raise Conflict(
                f"{folder} has an authority already: `tailrace auth issue` makes more certificates of it; a new fleet "
                "needs another folder"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATION_NAME, fleet), x509.NameAttribute(NameOID.COMMON_NAME, "tailrace")]
        )
        builder = _builder(names, names, key.public_key(), now, AUTHORITY_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        certificate = _signed(builder, key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(folder / AUTHORITY_KEY, _key_pem(key), 0o600)
        _write(folder / AUTHORITY, _pem(certificate), 0o644)
        return cls(folder, certificate, key, fleet)

    @classmethod
    def of(cls, folder: Path) -> Authority:
        """The one that was made in a folder. Raises ConfigError."""
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
        key = serialization.load_pem_private_key(data, None)
        fleets = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or len(fleets) != 1:
            raise ConfigError(
                f"{path}: not an authority of `tailrace auth init`; let whoever made it issue certificates"
            )
        return cls(folder, certificate, key, str(fleets[0].value))

    def issue(self, role: str, name: str, hosts: Sequence[str], now: float, days: int = DAYS, at: str = "") -> Path:
        """A certificate of a role and a name, with a key of its own, in the folder `at` (default: ROLE-NAME) below the
        authority's, in the place of one that is there. With `hosts` it may serve there."""
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
        folder = self.folder / (at or f"{role}-{name}")
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(folder / KEY, _key_pem(key), 0o600)
        _write(folder / CERTIFICATE, _pem(certificate), 0o644)
        _write(folder / AUTHORITY, _pem(self._certificate), 0o644)
        if (self.folder / REVOKED).exists():
            _write(folder / REVOKED, (self.folder / REVOKED).read_bytes(), 0o644)
        return folder

    def revoke(self, at: str, now: float) -> PeerCertificate:
        """Adds the certificate in the folder `at`, below the authority's, to the list of revoked ones, and puts that
        into every folder there. Raises ConfigError."""
        path = self.folder / at / CERTIFICATE
        try:
            [certificate, *_] = parsed(path.read_bytes(), str(path))
        except OSError as error:
            there = ", ".join(sorted(each.parent.name for each in self.folder.glob(f"*/{CERTIFICATE}")))
            raise ConfigError(f"{path}: {error.strerror}; there are {there or 'none'}") from None
        peer, when = peer_of(certificate), datetime.datetime.fromtimestamp(now, datetime.UTC)
        known = {entry.serial_number: entry for entry in self._revoked()}
        one = x509.RevokedCertificateBuilder().serial_number(peer.serial).revocation_date(when).build()
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._certificate.subject).last_update(when)
        builder = builder.next_update(when + datetime.timedelta(days=AUTHORITY_DAYS))
        for entry in (known | {peer.serial: known.get(peer.serial, one)}).values():
            builder = builder.add_revoked_certificate(entry)
        text = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        for folder in (self.folder, *(each.parent for each in self.folder.glob(f"*/{CERTIFICATE}"))):
            _write(folder / REVOKED, text, 0o644)
        return peer

    def _revoked(self) -> list[x509.RevokedCertificate]:
        try:
            data = (self.folder / REVOKED).read_bytes()
        except FileNotFoundError:
            return []
        revocations(data, [self._certificate], str(self.folder / REVOKED))
        return list(x509.load_pem_x509_crl(data))


class Shown(NamedTuple):
    """A certificate in a file: whose it is, the hosts where it may serve, and what is wrong with it (empty: all is
    well)."""

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
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress)]
        return Shown(path, peer, hosts, out_of_time(peer, now) or _revoked_there(path, peer))
    except (TailraceError, OSError) as error:
        return Shown(path, peer, hosts, str(error))


def _revoked_there(path: Path, peer: PeerCertificate) -> str:
    """Whether the list beside a certificate, or the one above it, has it."""
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
    """Raises InvalidRequest for what can be no certificate."""
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


def _write(path: Path, content: bytes, mode: int) -> None:
    """Puts a file there whole, with this mode from its first byte on."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(content)
        beside.chmod(mode)  # whatever the umask left of it
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
