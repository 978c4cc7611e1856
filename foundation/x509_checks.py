"""Checks of X.509 certificates: whose one is, whether it is valid now, has this key, and comes from this authority."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..model.caller import Caller, caller_of
from ..model.errors import ConfigError, InvalidRequest

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

EXTRA = 'certificates need the extra "tls": pip install "tailrace[tls]"'
#: Certificates of a chain, and authorities, that are looked at.
MOST = 16


class PeerCertificate(NamedTuple):
    """The certificate of one side: who it is, from when until when (wall clock seconds), and its serial number."""

    caller: Caller
    since: float
    until: float
    serial: int = 0


def parsed(data: bytes, where: str) -> list[Certificate]:
    """The certificates in a text of PEM, the first one first. Raises ConfigError."""
    try:
        from cryptography import x509
    except ImportError:
        raise ConfigError(EXTRA) from None
    try:
        found = x509.load_pem_x509_certificates(data)
    except ValueError:
        raise ConfigError(f"{where}: no certificate in PEM; expected -----BEGIN CERTIFICATE-----") from None
    if len(found) > MOST:
        raise ConfigError(f"{where}: {len(found)} certificates, expected at most {MOST}")
    return found


def peer_of(certificate: Certificate) -> PeerCertificate:
    """Whose a certificate is. Raises InvalidRequest for one that does not say it as this platform does."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except ValueError:
        raise InvalidRequest("its alternative names cannot be read") from None
    since, until = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return PeerCertificate(caller_of(uris), since, until, certificate.serial_number)


def peer_of_der(data: bytes) -> PeerCertificate:
    """The same of a certificate in DER."""
    from cryptography import x509

    return peer_of(x509.load_der_x509_certificate(data))


def usable(certificate: Certificate, where: str, now: float) -> PeerCertificate:
    """The same of one that is valid now. Raises ConfigError."""
    try:
        found = peer_of(certificate)
    except InvalidRequest as error:
        raise ConfigError(f"{where}: {error}") from None
    if why := out_of_time(found, now):
        raise ConfigError(f"{where}: {why}")
    return found


def revocations(data: bytes, authorities: Sequence[Certificate], where: str) -> frozenset[int]:
    """The serial numbers in a list of revoked certificates (CRL) in PEM or DER, which an authority must have signed. An
    old list stays in force. Raises ConfigError."""
    from cryptography import x509

    try:
        load = x509.load_pem_x509_crl if data.lstrip().startswith(b"-----") else x509.load_der_x509_crl
        found = load(data)
    except ValueError:
        raise ConfigError(f"{where}: no list of revoked certificates; expected -----BEGIN X509 CRL-----") from None
    for each in authorities:
        try:
            if found.is_signature_valid(each.public_key()):  # type: ignore[arg-type]
                return frozenset(entry.serial_number for entry in found)
        except (ValueError, TypeError):  # an authority with a key of another kind
            continue
    raise ConfigError(f"{where}: no authority of this fleet has signed it; `tailrace auth revoke` makes one")


def revoked(found: PeerCertificate, serials: Collection[int]) -> str:
    """Why a certificate is not taken any longer, where it was revoked; empty: it was not."""
    if found.serial in serials:
        return f"the certificate of {found.caller} was revoked; `tailrace auth issue` makes another one"
    return ""


def out_of_time(found: PeerCertificate, now: float) -> str:
    """Why a certificate is not valid now; empty: it is."""
    if now < found.since:
        return (
            f"the certificate of {found.caller} is valid from {moment(found.since)}, and it is {moment(now)} here: set "
            "the clock right"
        )
    if now >= found.until:
        return (
            f"the certificate of {found.caller} expired at {moment(found.until)}, and it is {moment(now)} here: "
            "`tailrace auth renew` makes another one"
        )
    return ""


def check_key(certificate: Certificate, key: bytes, where: str, at: str) -> None:
    """Raises ConfigError unless the private key in PEM is that of the certificate."""
    from cryptography.hazmat.primitives import serialization

    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError):
        raise ConfigError(
            f"{at}: no private key in PEM without a passphrase; expected -----BEGIN PRIVATE KEY-----"
        ) from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise ConfigError(f"{at}: it is not the key of {where}; put both of them there together")


def check_chain(chain: Sequence[Certificate], authorities: Sequence[Certificate], where: str, at: str) -> None:
    """Raises ConfigError unless each certificate was issued by the next one, and the last one by an authority."""
    for below, above in pairwise(chain):
        if not _issued(below, above):
            raise ConfigError(f"{where}: its certificates are no chain: each is to be followed by its issuer's")
    if not any(chain[-1] == each or _issued(chain[-1], each) for each in authorities):
        raise ConfigError(f"{where}: it was not issued by an authority in {at}: are they of two fleets?")


def _issued(below: Certificate, above: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        below.verify_directly_issued_by(above)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def moment(at: float) -> str:
    """A moment for people, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
